//go:build unix

package node

import (
	"net"
	"syscall"
)

// keptDescriptors are kept back for Raft's connections, files and certificates; or a
// quarter of what the process may have, if that is less.
const keptDescriptors = 256

// usesReservedDescriptor reports whether a connection has one of the descriptors that are kept
// back.
// The kernel gives the lowest number that is free, so all below are in use. The limit
// may be changed while the process runs. Networks of simulations have no descriptors.
func usesReservedDescriptor(conn net.Conn) bool {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return false
	}
	var limit syscall.Rlimit
	raw, err := tcp.SyscallConn()
	if err != nil || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return false
	}
	last := false
	err = raw.Control(func(number uintptr) {
		last = uint64(number) >= limit.Cur-min(limit.Cur/4, keptDescriptors)
	})
	return err == nil && last
}
