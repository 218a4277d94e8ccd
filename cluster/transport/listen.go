package transport

import (
	"context"
	"net"
	"syscall"
)

// ListenTCP opens a Raft port. Connections get their keep-alive once they are admitted.
func ListenTCP(address string) (net.Listener, error) {
	port := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error { return c.Control(keepSilent) }}
	port.SetMultipathTCP(false) // Not every kernel can defer the accept of silent connections of Multipath TCP.
	return port.Listen(context.Background(), "tcp", address)
}
