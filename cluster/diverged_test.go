package cluster_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/test/tier"
)

// changedState is a state that somebody changes beside the log: its hash is that
// of one with another record.
type changedState struct {
	*fsm.State
	by *atomic.Uint64
}

// Hash implements cluster.StateMachine.
func (s changedState) Hash() (index, hash uint64) {
	index, hash = s.State.Hash()
	return index, hash + s.by.Load()
}

// divergent is a network whose states can be changed one by one.
type divergent struct {
	*network
	by      map[*server]*atomic.Uint64
	configs map[*server]cluster.Config
	// differed is how many differences each node reported.
	differed map[*server]*atomic.Int64
}

func startDivergent(t *testing.T, size int, tune ...func(*cluster.Config)) *divergent {
	d := &divergent{
		network: newNetwork(t, size, tune...), by: map[*server]*atomic.Uint64{},
		configs: map[*server]cluster.Config{}, differed: map[*server]*atomic.Int64{},
	}
	for _, s := range d.servers {
		s.open(d.configure(s, func(c *cluster.Config) { c.PeerList = d.peers }))
	}
	startAll(d.servers...)
	d.leader()
	return d
}

func (d *divergent) configure(s *server, more func(*cluster.Config)) func(*cluster.Config) {
	d.by[s], d.differed[s] = &atomic.Uint64{}, &atomic.Int64{}
	return func(c *cluster.Config) {
		c.StateMachine = changedState{s.state, d.by[s]}
		c.Events.StateDiffers = func() { d.differed[s].Add(1) }
		more(c)
		d.configs[s] = *c
	}
}

// change changes a node's state, and gives everybody an entry to compare at. Any entry
// does: the node may have ended before the call at the leader, which may be that node or
// may need it, is answered.
func (d *divergent) change(s *server, by uint64) {
	d.t.Helper()
	leader, ended := d.leader(), s.node.Done()
	ctx, cancel := context.WithTimeout(d.t.Context(), testCallLimit)
	defer cancel()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	d.by[s].Store(by)
	if _, err := leader.next(ctx, "users"); err != nil && s.node.Err() == nil {
		d.t.Fatalf("%s: next: %v", leader.tag, err)
	}
}

// wantDiverged waits until the node has ended for its state, and checks that it
// does not start again.
func (d *divergent) wantDiverged(s *server) {
	d.t.Helper()
	select {
	case <-s.node.Done():
	case <-time.After(20 * time.Second):
		d.t.Fatalf("%s goes on with another state than the others", s.tag)
	}
	if err := s.node.Err(); !errors.Is(err, member.ErrDiverged) {
		d.t.Errorf("%s ended with %v", s.tag, err)
	}
	s.stop(true)
	if n, err := cluster.Open(d.configs[s]); !errors.Is(err, member.ErrDiverged) {
		d.t.Errorf("%s starts again: %v, %v", s.tag, n, err)
	}
}

func (d *divergent) goesOn(s *server) {
	d.t.Helper()
	if err := s.node.Err(); err != nil {
		d.t.Errorf("%s ended with %v", s.tag, err)
	}
}

// reported waits until a node reports the difference: the alarm is raised by those that
// go on. What the other one told before it ended may be ahead of the node, and is compared
// once the node has got there.
func (d *divergent) reported(s *server) {
	d.t.Helper()
	eventually(d.t, "difference reported by "+s.tag, func() bool { return d.differed[s].Load() > 0 })
}

// TestADivergedFollowerEnds: the two others go on, and report it.
func TestADivergedFollowerEnds(t *testing.T) {
	t.Parallel()
	d := startDivergent(t, 3)
	s := d.others(d.leader())[0]
	d.change(s, 1)
	d.wantDiverged(s)
	for _, o := range d.others(s) {
		d.goesOn(o)
		d.reported(o)
		o.mustNext("users")
	}
}

// TestADivergedLeaderEnds: it is the odd one of three.
func TestADivergedLeaderEnds(t *testing.T) {
	t.Parallel()
	d := startDivergent(t, 3)
	s := d.leader()
	d.change(s, 1)
	d.wantDiverged(s)
	for _, o := range d.others(s) {
		o.mustNext("users")
		d.goesOn(o)
		d.reported(o)
	}
}

// TestOfTwoDivergedNodesTheLeaderStays: nobody can say which of them is right. It takes
// seconds, in which the same node must lead: another leader would stay as well.
func TestOfTwoDivergedNodesTheLeaderStays(t *testing.T) {
	tier.Long(t)
	d := startDivergent(t, 3, patient)
	leader := d.leader()
	down, s := d.others(leader)[0], d.others(leader)[1]
	down.stop(true)
	d.change(s, 1)
	d.wantDiverged(s)
	d.goesOn(leader)
	down.open(d.configure(down, func(c *cluster.Config) { c.PeerList = d.peers }))
	down.start()
	// The library sends nothing to a follower for as long again as it was away.
	down.eventuallyNext("users")
	d.goesOn(leader)
	d.goesOn(down)
}

// TestADivergedWatcherEnds: it has no vote, and its state is read.
func TestADivergedWatcherEnds(t *testing.T) {
	t.Parallel()
	d := startDivergent(t, 1)
	w := newServer(t, "W")
	d.servers = append(d.servers, w)
	w.open(d.configure(w, func(c *cluster.Config) { c.Join, c.Watcher = []string{d.servers[0].grpc}, true }))
	w.start()
	w.mustNext("users")
	d.change(w, 1)
	d.wantDiverged(w)
	d.servers[0].mustNext("users")
}
