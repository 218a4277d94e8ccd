//go:build !unix

package node

import "net"

// usesReservedDescriptor is not known here.
func usesReservedDescriptor(net.Conn) bool { return false }
