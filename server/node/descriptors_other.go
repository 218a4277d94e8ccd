//go:build !unix

package node

import "net"

// usesReservedDescriptor returns false: the limit is not known on this system.
func usesReservedDescriptor(net.Conn) bool { return false }
