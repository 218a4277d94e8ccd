package cluster_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/test/tier"
)

// tornStream lets the bytes of connections through up to the first ones with a word,
// and holds that connection until it is torn. Later connections are whole.
type tornStream struct {
	word []byte
	held chan struct{} // closed when a connection is held
	torn chan struct{}
	once sync.Once
}

func (s *tornStream) wrap(conn net.Conn) net.Conn { return &tornConn{Conn: conn, stream: s} }

type tornConn struct {
	net.Conn
	stream *tornStream
	ends   bool
}

func (c *tornConn) Read(p []byte) (int, error) {
	if c.ends {
		<-c.stream.torn
		return 0, errors.New("the connection is torn")
	}
	n, err := c.Conn.Read(p)
	if at := bytes.Index(p[:n], c.stream.word); at >= 0 {
		c.stream.once.Do(func() {
			c.ends = true
			close(c.stream.held)
		})
		if c.ends {
			return at + len(c.stream.word), nil
		}
	}
	return n, err
}

// countedRestore is a state machine that notes each snapshot that it is given.
type countedRestore struct {
	cluster.StateMachine
	restored chan<- struct{}
}

func (s countedRestore) Restore(r io.Reader) error {
	s.restored <- struct{}{}
	return s.StateMachine.Restore(r)
}

// TestTheLeaderIsKilledWhileItSendsASnapshot: the follower has a part of it, which it
// never uses. It votes for the next leader, and installs the snapshot of that one.
func TestTheLeaderIsKilledWhileItSendsASnapshot(t *testing.T) {
	tier.Long(t)
	n := startNetwork(t, 3)
	f := n.others(n.leader())[0]
	f.stop(true)
	const word = "only-in-the-snapshot"
	n.leader().mustNext(word + "/")
	for _, s := range n.others(f) {
		s.stop(true)
		s.open(func(c *cluster.Config) {
			c.PeerList, c.TrailingLogs, c.SnapshotThreshold, c.SnapshotInterval = n.peers, 1, 8, 20*time.Millisecond
		})
	}
	startAll(n.others(f)...)
	behind, last := uint64(n.leader().mustNext("a/")), int64(0)
	for _, s := range n.others(f) {
		eventually(t, "a log without what the follower needs", func() bool {
			last = n.leader().mustNext("a/")
			stats, _ := s.node.RaftStats()
			return stats.SnapshotIndex > behind+20
		})
	}

	stream := &tornStream{word: []byte(word), held: make(chan struct{}), torn: make(chan struct{})}
	tear := sync.OnceFunc(func() { close(stream.torn) })
	t.Cleanup(tear)
	restored := make(chan struct{}, 16)
	f.open(func(c *cluster.Config) {
		c.PeerList = n.peers
		c.Network = wrappedTCP(func(conn net.Conn) net.Conn { return stream.wrap(f.link.wrap(conn)) })
		c.StateMachine = countedRestore{c.StateMachine, restored}
	})
	started := make(chan struct{})
	go func() {
		defer close(started)
		f.start()
	}()
	select {
	case <-stream.held:
	case <-time.After(20 * time.Second):
		t.Fatal("no snapshot on its way within 20 s")
	}
	var old *server
	for _, s := range n.others(f) {
		if leads(s) {
			old = s
		}
	}
	if old == nil {
		t.Fatal("nobody leads while a snapshot is on its way")
	}
	last = old.mustNext("a/")
	old.stop(true)
	if len(restored) != 0 {
		t.Error("a part of a snapshot was restored")
	}
	tear()
	<-started

	next := n.leader()
	v, failed := next.eventuallyNext("a/")
	if v <= last || v > last+1+failed {
		t.Errorf("%s gave %d after %d, and %d tries without an answer", next.tag, v, last, failed)
	}
	eventually(t, "snapshot of the next leader", func() bool { return len(restored) > 0 })
	n.agree()
	if at, _ := f.state.Hash(); at <= behind {
		t.Errorf("the follower is at %d still", at)
	}
	n.run(old)
	if again := old.mustNext("a/"); again <= v {
		t.Errorf("%s gave %d after %d", old.tag, again, v)
	}
	n.agree()
}
