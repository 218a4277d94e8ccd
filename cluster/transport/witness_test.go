package transport

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
)

// disk is a Witness whose own disk a test sets back.
type disk struct {
	*witness.Witness
	mu  sync.Mutex
	own witness.DiskState
	// next is the state after own, once own was read.
	next *witness.DiskState
}

func (d *disk) Own() witness.DiskState {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := d.own
	if d.next != nil {
		d.own, d.next = *d.next, nil
	}
	return own
}

func (d *disk) set(own witness.DiskState, next *witness.DiskState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.own, d.next = own, next
}

// trusted is a disk that every member accepts, whatever it acknowledges.
var trusted = witness.DiskState{Starts: 1, Last: math.MaxUint64, Term: math.MaxUint64, Trusted: true}

func newDisk(own witness.DiskState) *disk { return &disk{Witness: witness.New(nil), own: own} }

// TestASetBackNodeIsRefusedBothWays: as the dialler it gets a refusal, and as the dialled node
// its connection is not used.
func TestASetBackNodeIsRefusedBothWays(t *testing.T) {
	b := newBook()
	before, after := witness.DiskState{Starts: 1, Last: 9, Term: 3, Committed: 9}, witness.DiskState{Starts: 2, Last: 8, Term: 3}
	a := start(t, b, "A", func(c *Config) { c.Witness = newDisk(before) })
	first := start(t, b, "B", func(c *Config) { c.Witness = newDisk(before) })
	if err := first.Greet(t.Context(), raft.ServerID(idOf("A"))); err != nil || !first.Greeted(raft.ServerID(idOf("A"))) {
		t.Fatal("the first process was refused:", err)
	}
	_ = first.Close()
	var told Status
	second := start(t, b, "B", func(c *Config) {
		c.Witness, c.OnRefused = newDisk(after), func(_ Peer, s Status) { told = s }
	})
	var refused *RefusedError
	err := second.Greet(t.Context(), raft.ServerID(idOf("A")))
	if !errors.As(err, &refused) || refused.Status != SetBack || told != SetBack || second.Greeted(raft.ServerID(idOf("A"))) {
		t.Errorf("it greets with less than it had: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := a.stream.dial(ctx, idOf("B"), forRaft, 0); err == nil {
		t.Error("it is dialled, and answers with less than it had")
	}
	after.Trusted = true
	_ = second.Close()
	third := start(t, b, "B", func(c *Config) { c.Witness = newDisk(after) })
	if err := third.Greet(t.Context(), raft.ServerID(idOf("A"))); err != nil {
		t.Error("an operator trusts it:", err)
	}
}

// TestAProcessSetBackWithItsMemoryIsRefusedBothWays: it has the same number as before, and
// less on its disk, or it only is younger. A greeting that was overtaken is no such thing.
func TestAProcessSetBackWithItsMemoryIsRefusedBothWays(t *testing.T) {
	now := witness.DiskState{Starts: 1, Last: 20, Term: 4, Committed: 20, Age: time.Minute}
	for name, before := range map[string]witness.DiskState{
		"less on its disk": {Starts: 1, Last: 9, Term: 3, Committed: 9, Age: time.Hour},
		"only younger":     {Starts: 1, Last: 20, Term: 4, Committed: 20, Age: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b, own := newBook(), newDisk(now)
			a := start(t, b, "A", func(c *Config) { c.Witness = newDisk(trusted) })
			var told Status
			process := start(t, b, "B", func(c *Config) {
				c.Witness, c.OnRefused = own, func(_ Peer, s Status) { told = s }
			})
			must(t, process.Greet(t.Context(), raft.ServerID(idOf("A"))))
			a.acknowledged(raft.ServerID(idOf("B")), now.Term, now.Last, now.Last)

			own.set(before, &now)
			if err := process.Greet(t.Context(), raft.ServerID(idOf("A"))); err != nil {
				t.Error("a greeting that arrives late is refused:", err)
			}
			own.set(before, nil)
			if _, err := a.stream.dial(t.Context(), idOf("B"), forRaft, 0); err == nil {
				t.Error("it is dialled, and answers with less than it had")
			}
			var refused *RefusedError
			err := process.Greet(t.Context(), raft.ServerID(idOf("A")))
			if !errors.As(err, &refused) || refused.Status != SetBack || told != SetBack {
				t.Errorf("it greets with less than it had: %v", err)
			}
		})
	}
}

// TestNoVoteBeforeAMajorityHasAcceptedTheProcess: of five voters two others must have accepted
// it; the candidate is one of them.
func TestNoVoteBeforeAMajorityHasAcceptedTheProcess(t *testing.T) {
	b := newBook()
	empty := func(c *Config) { c.Witness = newDisk(witness.DiskState{Starts: 1}) }
	a := start(t, b, "A", empty)
	start(t, b, "C", empty)
	var voters []raft.ServerID
	for _, tag := range []string{"A", "B", "C", "D", "E"} {
		voters = append(voters, raft.ServerID(idOf(tag)))
	}
	started := start(t, b, "B", func(c *Config) {
		empty(c)
		c.Voters = func() []raft.ServerID { return voters }
	})
	started.StopWaiting() // D and E had their time.
	go func() {
		for rpc := range started.Consumer() {
			switch rpc.Command.(type) {
			case *raft.RequestVoteRequest:
				rpc.Respond(&raft.RequestVoteResponse{Granted: true}, nil)
			case *raft.RequestPreVoteRequest:
				rpc.Respond(&raft.RequestPreVoteResponse{Granted: true}, nil)
			case nil:
				return
			default:
				rpc.Respond(&raft.TimeoutNowResponse{}, nil)
			}
		}
	}()
	t.Cleanup(func() { close(started.inbound.toRaft) })
	target, header := raft.ServerID(idOf("B")), raft.RPCHeader{ProtocolVersion: 3, ID: []byte(idOf("A")), Addr: []byte(idOf("A"))}
	asked := func() (votes int) {
		if err := a.RequestVote(target, Address(target), &raft.RequestVoteRequest{RPCHeader: header}, &raft.RequestVoteResponse{}); err == nil {
			votes++
		}
		if err := a.RequestPreVote(target, Address(target), &raft.RequestPreVoteRequest{RPCHeader: header},
			&raft.RequestPreVoteResponse{}); err == nil {
			votes++
		}
		request := &raft.TimeoutNowRequest{RPCHeader: header}
		if err := a.NetworkTransport.TimeoutNow(target, Address(target), request, &raft.TimeoutNowResponse{}); err == nil {
			votes++
		}
		return votes
	}
	if n := asked(); n != 0 {
		t.Errorf("%d of 3 requests reached Raft before a majority had accepted the process", n)
	}
	if err := started.Greet(t.Context(), raft.ServerID(idOf("C"))); err != nil {
		t.Fatal(err)
	}
	if n := asked(); n != 3 {
		t.Errorf("%d of 3 requests reached Raft when a majority had accepted the process", n)
	}
}

// TestEntriesThatArriveProveNothingOfTheLeadersDisk: the leader may still be writing them, and
// restart without them in the same term. Its commit index is on its disk.
func TestEntriesThatArriveProveNothingOfTheLeadersDisk(t *testing.T) {
	w := newDisk(trusted)
	i := &inbound{s: &stream{cfg: Config{Witness: w}}}
	leader := idOf("A")
	i.witnessed(&raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ID: []byte(leader)}, Term: 3, PrevLogEntry: 7, LeaderCommitIndex: 6,
		Entries: []*raft.Log{{Index: 8}, {Index: 9}},
	})
	for last, accepted := range map[uint64]bool{6: true, 5: false} {
		if err := w.Accept(leader, 1, witness.DiskState{Starts: 1, Last: last, Term: 3}, w.Seen(leader)); (err == nil) != accepted {
			t.Errorf("a log that ends at %d: %v", last, err)
		}
	}
}
