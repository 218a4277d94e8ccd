package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/fsmtest"
	"github.com/idnode/idnode/transfer"
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
		ids := &services{Service: newService(t, b)}
		for i := range 200 { // Of 1,000 bytes each: more than two pieces.
			if _, err := ids.Claim(t.Context(), &idnodev1.ClaimRequest{Id: fmt.Sprintf("%01000d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		server := services{Service: newService(t, b)}
		backup := func(pause time.Duration) (*slowReader, error) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel() // As gRPC does.
			r := &slowReader{ctx: ctx, pause: pause}
			return r, server.Backup(&idnodev1.BackupRequest{},
				&grpc.GenericServerStream[idnodev1.BackupRequest, idnodev1.BackupResponse]{ServerStream: r})
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

// TestManyDatabasesAreBackedUpAndRestored: the etags of one node are more than a message, and
// its tag goes on in a cluster that lacks another tag of the backup, and at first the room.
func TestManyDatabasesAreBackedUpAndRestored(t *testing.T) {
	const databases, ceiling, skip = 40_000, 1_000, 500
	gone := fsmtest.Member("A")
	gone.Id = fsmtest.NodeID("X")
	node := fsmtest.NewNode(t, time.Unix(0, 1_700_000_000_000_000_123), gone, fsmtest.Member("C"))
	from := serveFrom(t, &backend{Node: node}, Config{}, nil)
	from.allow(t, databases)
	raise := &raftlogv1.EtagRaise{Node: gone.GetId()}
	for i := range databases {
		raise.Raise = append(raise.Raise, &raftlogv1.EtagCeiling{Database: fmt.Sprintf("%0128d", i), Ceiling: ceiling})
	}
	from.Must(op.Envelope{}, raise)
	from.Must(op.Envelope{}, &raftlogv1.EtagRaise{Node: fsmtest.NodeID("C"), Raise: raise.GetRaise()[:1]})
	path := filepath.Join(t.TempDir(), "many.backup")
	if _, err := transfer.SaveBackup(path, from.backupInto(t)); err != nil {
		t.Fatal(err)
	}

	to := serve(t, Config{}, nil)
	b, err := transfer.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := (&transfer.Restore{Backup: b, Conn: to.conn, SkipAhead: skip, ShareTags: true, Settings: true}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if restored.Cluster.GetGiven() != 1 || !slices.Equal(restored.Cluster.GetShared(), []string{"A"}) {
		t.Errorf("%d tags are given, and %s shared", restored.Cluster.GetGiven(), restored.Cluster.GetShared())
	}
	etags := to.State.Etags(fsmtest.NodeID("A")).GetCeilings()
	if len(etags) != databases || slices.ContainsFunc(etags, func(e *raftlogv1.EtagCeiling) bool { return e.GetFloor() != ceiling+skip }) {
		t.Errorf("the etags of %d databases go on above others than %d", len(etags), ceiling+skip)
	}
}

// allow lets the cluster have so many databases.
func (r *rig) allow(t *testing.T, databases int64) {
	t.Helper()
	most := &idnodev1.UpdateSettingRequest{Key: "max-databases", Value: proto.Int64(databases)}
	if _, err := r.cluster.UpdateSetting(t.Context(), most); err != nil {
		t.Fatal(err)
	}
}

// backupInto writes a backup into a file.
func (r *rig) backupInto(t *testing.T) transfer.Write {
	return func(file *os.File) error {
		stream, err := idnodev1.NewAdminServiceClient(r.conn).Backup(t.Context(), &idnodev1.BackupRequest{})
		for err == nil {
			var piece *idnodev1.BackupResponse
			if piece, err = stream.Recv(); err == nil {
				_, err = file.Write(piece.GetData())
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}
