//go:build unix

package node

import (
	"net"
	"syscall"
)

// keptDescriptors is the number of descriptors reserved for Raft's connections, files and
// certificates; a quarter of the process's limit, if that is less.
const keptDescriptors = 256

// usesReservedDescriptor reports whether a connection has a reserved descriptor. The kernel
// gives the lowest free number, so all below are in use. The limit may change while the
// process runs. Connections of simulated networks have no descriptors.
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
