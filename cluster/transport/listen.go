package transport

import (
	"context"
	"net"
	"syscall"
)

// ListenTCP opens a Raft port. Connections get their keep-alive once they are admitted.
func ListenTCP(address string) (net.Listener, error) {
	port := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error { return c.Control(keepSilent) }}
	port.SetMultipathTCP(false) // Not each kernel can keep back the silent ones of it.
	return port.Listen(context.Background(), "tcp", address)
}
