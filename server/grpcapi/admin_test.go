package grpcapi

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// slowReader is a stream whose reader takes a piece after so long.
type slowReader struct {
	grpc.ServerStream
	ctx    context.Context
	pause  time.Duration
	pieces int
}

func (r *slowReader) Context() context.Context { return r.ctx }

func (r *slowReader) SendMsg(any) error {
	select {
	case <-time.After(r.pause):
		r.pieces++
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// TestBackupOfASlowReader: one who takes no piece for long is given up, which makes room
// for others; one who goes on, however slowly, gets all.
func TestBackupOfASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t)
		ids := &idsServer{service: newService(t, b)}
		for i := range 200 { // Of 1,000 bytes each: more than two pieces.
			if _, err := ids.Claim(t.Context(), &idnodev1.ClaimRequest{Id: fmt.Sprintf("%01000d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		server := adminServer{service: newService(t, b)}
		backup := func(pause time.Duration) (*slowReader, error) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel() // As gRPC does.
			r := &slowReader{ctx: ctx, pause: pause}
			return r, server.Backup(&idnodev1.BackupRequest{}, &grpc.GenericServerStream[idnodev1.BackupRequest, idnodev1.BackupResponse]{ServerStream: r})
		}
		for range 10 { // More than may be at once.
			_, err := backup(pieceTime + time.Second)
			wantStatus(t, err, codes.Unavailable, "STOPPING", "")
		}
		if r, err := backup(pieceTime - time.Second); err != nil || r.pieces < 3 {
			t.Errorf("%d pieces for a slow reader: %v", r.pieces, err)
		}
	})
}
