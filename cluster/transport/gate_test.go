package transport

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
)

// gateOf returns the gate of node A among voters, of which some have accepted it.
func gateOf(t *testing.T, voters, accepted string) *gate {
	t.Helper()
	ids := func() (ids []raft.ServerID) {
		for _, tag := range voters {
			ids = append(ids, raft.ServerID(idOf(string(tag))))
		}
		return ids
	}
	g := &gate{s: &stream{
		cfg:  Config{Voters: ids, Directory: newBook(), Logger: discard, Witness: newDisk(trusted)},
		self: raft.ServerID(idOf("A")), nodes: newNodes(), refused: newLimiter(time.Second),
	}}
	for _, tag := range accepted {
		g.s.nodes.accepted(raft.ServerID(idOf(string(tag))))
	}
	return g
}

// TestAGateWaitsForWitnesses: one voter of three has not seen the entries that this node
// acknowledged, and accepts it at once. The other voter may have seen them, and is heard first.
func TestAGateWaitsForWitnesses(t *testing.T) {
	for _, tt := range []struct {
		name, voters, accepted string
		// at once, and when the others had their time.
		first, later bool
	}{
		{"a cluster of one", "A", "", true, true},
		{"all have accepted it", "ABC", "BC", true, true},
		{"a majority has", "ABC", "B", false, true},
		{"nobody has", "ABC", "", false, false},
		{"a minority has", "ABCDE", "B", false, false},
		{"a majority of five", "ABCDE", "BC", false, true},
		{"others have, which do not vote", "ABC", "DE", false, false},
		{"no voter is known", "", "", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := gateOf(t, tt.voters, tt.accepted)
			if got := g.open(); got != tt.first {
				t.Errorf("at first it is %v, want %v", got, tt.first)
			}
			g.waited.Store(true)
			if got := g.open(); got != tt.later {
				t.Errorf("when the others had their time it is %v, want %v", got, tt.later)
			}
			g.s.setBack.Store(true)
			if g.open() {
				t.Error("it is open though a member has seen more of this process's disk")
			}
		})
	}
}

// TestNoCampaignBeforeTheGateOpens: a node whose disk was set back could be elected by a voter
// that has not seen the lost entries.
func TestNoCampaignBeforeTheGateOpens(t *testing.T) {
	b := newBook()
	a, other := start(t, b, "A", nil), start(t, b, "B", nil)
	a.inbound.gate = gateOf(t, "ABC", "")
	err := a.RequestPreVote(raft.ServerID(idOf("B")), Address(raft.ServerID(idOf("B"))), &raft.RequestPreVoteRequest{},
		&raft.RequestPreVoteResponse{})
	if !errors.Is(err, errNotGreeted) {
		t.Errorf("it asks for a vote: %v", err)
	}
	select {
	case rpc := <-other.Consumer():
		t.Errorf("%T arrived", rpc.Command)
	default:
	}
}

// TestATrustedNodeElectsTheFurthest: when a trusted node campaigns and votes, as it greets more
// and more voters, until it has their entries under a leader.
func TestATrustedNodeElectsTheFurthest(t *testing.T) {
	g := gateOf(t, "ABC", "BC")
	own, led := newDisk(witness.DiskState{LastTerm: 2, Last: 10}), uint64(0)
	g.s.cfg.Witness, g.trusted, g.led = own, true, func() uint64 { return led }
	want := func(what string, itself, shorter, longer bool) {
		t.Helper()
		vote := func(lastTerm, last uint64) bool {
			return g.pass(raft.RPC{
				Command: &raft.RequestVoteRequest{LastLogTerm: lastTerm, LastLogIndex: last}, RespChan: make(chan raft.RPCResponse, 1),
			})
		}
		if got := [3]bool{g.mayCampaign() == nil, vote(2, 11), vote(3, 5)}; got != [3]bool{itself, shorter, longer} {
			t.Errorf("%s: it campaigns, votes for 11 of term 2, for 5 of term 3: %v", what, got)
		}
	}
	meets := func(tag string, disk witness.DiskState) {
		g.s.nodes.tell(raft.ServerID(idOf(tag)), disk)
	}
	want("it has met nobody", true, true, true)
	meets("D", witness.DiskState{LastTerm: 9, Last: 9})
	want("it has met a node that does not vote", true, true, true)
	meets("B", witness.DiskState{LastTerm: 2, Last: 11})
	want("one has an entry more", false, true, true)
	meets("C", witness.DiskState{LastTerm: 3, Last: 5})
	want("one has a later entry", false, false, true)
	led = 4
	want("one of them leads", false, false, true)
	own.set(witness.DiskState{LastTerm: 4, Last: 6}, nil)
	want("it has what they had", true, true, true)
	meets("C", witness.DiskState{LastTerm: 5, Last: 7})
	want("one has more since", true, true, true)
}
