package cluster_test

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/test/tier"
)

// slowRestore is a state machine that restores when it may.
type slowRestore struct {
	cluster.StateMachine
	begun chan<- []byte // gets each snapshot
	may   <-chan struct{}
}

func (s slowRestore) Restore(r io.Reader) error {
	snapshot, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.begun <- snapshot
	<-s.may
	return s.StateMachine.Restore(bytes.NewReader(snapshot))
}

// TestALeaderLeadsWhileItsOnlyFollowerInstalls: one of three voters is down, and
// another restores a snapshot for longer than a message may take. The leader keeps
// its quorum, and the snapshot is not sent again.
func TestALeaderLeadsWhileItsOnlyFollowerInstalls(t *testing.T) {
	tier.Long(t)
	// A leader that loses its lease gets no vote before the restore is done, so a busy
	// machine must not take it; without heartbeats it is lost in any case.
	const patient = time.Second
	n := startNetwork(t, 3)
	f := n.others(n.leader())[0]
	behind := f.mustNext("a/")
	f.stop(true)
	for _, s := range n.others(f) {
		s.stop(true)
		s.open(func(c *cluster.Config) {
			c.PeerList, c.Heartbeat = n.peers, patient
			c.TrailingLogs, c.SnapshotThreshold, c.SnapshotInterval = 1, 8, 20*time.Millisecond
		})
	}
	startAll(n.others(f)...)
	for _, s := range n.others(f) {
		eventually(t, "a log without what the follower needs", func() bool {
			n.leader().mustNext("a/")
			stats, _ := s.node.RaftStats()
			return stats.SnapshotIndex > uint64(behind)+20
		})
	}

	begun, may := make(chan []byte, 8), make(chan struct{})
	release := sync.OnceFunc(func() { close(may) })
	defer release()
	f.open(func(c *cluster.Config) {
		c.PeerList, c.Heartbeat = n.peers, patient
		c.StateMachine = slowRestore{c.StateMachine, begun, may}
	})
	f.start()
	eventually(t, "a restore", func() bool { return len(begun) > 0 })
	first := <-begun
	// Only now, so that the leader is never without a quorum.
	l := n.leader()
	for _, s := range n.others(f) {
		if s != l {
			s.stop(true)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	go func() { _, _ = l.next(ctx, "b/") }() // An entry waits, and is no reason to step down.
	for end := time.Now().Add(2800 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !leads(l) || !l.node.HasQuorum() {
			t.Fatal("the leader lost its quorum while its follower restores a snapshot")
		}
	}
	release()
	l.mustNext("a/")
	n.agree()
	// The leader may have made a newer one meanwhile.
	for len(begun) > 0 {
		if bytes.Equal(first, <-begun) {
			t.Error("the snapshot was sent again")
		}
	}
}
