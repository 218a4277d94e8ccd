package peer

import (
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/server/budget"
)

// TestRefusedConnectionsHearWhy, so many at once: then their room is used up, and connections just end.
func TestRefusedConnectionsHearWhy(t *testing.T) {
	none := NewConnections(func(net.Conn, credentials.AuthInfo) *budget.Connection { return nil })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(none.Credentials(nil)))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	ask := func() error {
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
		return err
	}
	if err := ask(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), budget.ErrTooMany.Error()) {
		t.Errorf("%v", err)
	}
	for range refusalsAtOnce {
		none.refusals <- struct{}{} // It blocks while there is none.
	}
	if err := ask(); status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), budget.ErrTooMany.Error()) {
		t.Errorf("without room: %v", err)
	}
}
