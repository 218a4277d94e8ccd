package cluster_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/test/tier"
)

// cutSnapshot is a snapshot of which only the first bytes are written.
type cutSnapshot struct {
	cluster.Snapshot
	begun func()
	may   <-chan struct{}
}

func (s cutSnapshot) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write([]byte("torn"))
	s.begun()
	<-s.may
	return int64(n), errors.Join(err, errors.New("the node is killed"))
}

// TestTheLeaderIsKilledWhileItWritesASnapshot: what it has written of it stays in its
// directory, as after a kill, and is never used.
func TestTheLeaderIsKilledWhileItWritesASnapshot(t *testing.T) {
	tier.Long(t)
	n := startNetwork(t, 3)
	old := n.leader()
	old.stop(true)
	begun, may := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(begun) })
	release := sync.OnceFunc(func() { close(may) })
	t.Cleanup(release)
	old.open(func(c *cluster.Config) {
		c.PeerList, c.TrailingLogs, c.SnapshotThreshold, c.SnapshotInterval = n.peers, 1, 8, 20*time.Millisecond
		take := c.TakeSnapshot
		c.TakeSnapshot = func() cluster.Snapshot { return cutSnapshot{take(), once, may} }
	})
	old.start()
	n.leads(old)
	var last int64
	eventually(t, "snapshot that is being written", func() bool {
		last = old.mustNext("a/")
		select {
		case <-begun:
			return true
		default:
			return false
		}
	})
	if !leads(old) {
		t.Fatalf("%s no longer leads", old.tag)
	}
	torn := tornSnapshot(t, old.dir)
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.CopyFS(kept, os.DirFS(torn)); err != nil {
		t.Fatal(err)
	}
	release()
	old.stop(true)
	next := n.leader()
	v, failed := next.eventuallyNext("a/")
	if v <= last || v > last+1+failed {
		t.Errorf("%s gave %d after %d, and %d tries without an answer", next.tag, v, last, failed)
	}
	// The end of a process removes nothing.
	if err := errors.Join(os.RemoveAll(torn), os.CopyFS(torn, os.DirFS(kept))); err != nil {
		t.Fatal(err)
	}
	n.run(old)
	if again := old.mustNext("a/"); again <= v {
		t.Errorf("%s gave %d after %d", old.tag, again, v)
	}
	n.agree()
}

// tornSnapshot returns the folder of the snapshot that is being written.
func tornSnapshot(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "snapshots", "*.tmp"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q are being written, want one", found)
	}
	return found[0]
}
