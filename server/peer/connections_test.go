package peer

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/idnode/idnode/server/budget"
)

// TestStalledConnectionsEnd, and those whose other end reads stay.
func TestStalledConnectionsEnd(t *testing.T) {
	b := budget.New(budget.Limits{Bytes: 100, Connections: 2})
	connections := NewConnections(func(net.Conn, credentials.AuthInfo) *budget.Connection { return b.Open("shop") })
	var conns [2]net.Conn
	for i := range conns {
		server, client := net.Pipe()
		defer client.Close()
		known, _, err := connections.Credentials(nil).ServerHandshake(server)
		if err != nil {
			t.Fatal(err)
		}
		known.(*conn).held.Unsent(25)
		conns[i] = known
	}
	now := time.Now()
	connections.EndStalled(now)
	conns[1].(*conn).held.Sent(1)
	connections.EndStalled(now.Add(time.Minute))
	for i, conn := range conns {
		err := conn.SetDeadline(time.Now())
		if ended := errors.Is(err, io.ErrClosedPipe); ended != (i == 0) {
			t.Errorf("connection %d: %v", i, err)
		}
		conn.Close()
	}
}
