//go:build !linux

package transport

import "net"

// keepSilent does nothing: only Linux can defer accepts.
func keepSilent(uintptr) {}

// divide returns the listener: only Linux can tell connections apart before their accept.
func divide(l *net.TCPListener) net.Listener { return l }
