package grpcapi

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestIdleConnectionsEnd, and the next call connects again without an error.
func TestIdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Config{}, nil)
		for range 2 {
			if _, err := r.cluster.GetStatus(t.Context(), &idnodev1.GetStatusRequest{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(idleTime - time.Minute)
			if state := r.conn.GetState(); state != connectivity.Ready {
				t.Errorf("a connection that was used lately is %s", state)
			}
			time.Sleep(2 * time.Minute)
			if state := r.conn.GetState(); state != connectivity.Idle {
				t.Errorf("an idle connection is %s", state)
			}
		}
	})
}
