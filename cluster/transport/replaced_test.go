package transport

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
)

// TestConnectionsWithAFormerProcessAreClosed: a member's machine lost power and has started
// again, and no packet has closed the connections with the former process. A request on them
// would time out. The connections of other members stay.
func TestConnectionsWithAFormerProcessAreClosed(t *testing.T) {
	for name, greet := range map[string]func(t *testing.T, restarted, other *Transport) error{
		"it greets": func(t *testing.T, restarted, _ *Transport) error {
			return restarted.Greet(t.Context(), raft.ServerID(idOf("B")))
		},
		"it is greeted": func(t *testing.T, _, other *Transport) error {
			return other.Greet(t.Context(), raft.ServerID(idOf("A")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			process := func(started uint64) *Transport {
				return start(t, b, "A", func(c *Config) { c.Witness = newDisk(witness.DiskState{Starts: started}) })
			}
			former := process(1)
			other := start(t, b, "B", nil)
			third := start(t, b, "C", nil)
			for _, tr := range []*Transport{former, other, third} {
				go grantAll(t.Context(), tr)
			}
			ask := func(from *Transport, to string) error {
				return from.RequestVote(raft.ServerID(idOf(to)), "", &raft.RequestVoteRequest{RPCHeader: header("B"), Term: 3},
					&raft.RequestVoteResponse{})
			}
			must(t, ask(other, "A"))
			dialCalls(t, other, "A", former)
			must(t, ask(former, "B"))
			must(t, ask(other, "C"))
			must(t, ask(third, "B"))

			restarted := process(2)
			got := make(chan struct{}, 1)
			go func() {
				rpc := <-restarted.Consumer()
				rpc.Respond(&raft.RequestVoteResponse{Granted: true}, nil)
				got <- struct{}{}
			}()
			must(t, greet(t, restarted, other))
			must(t, ask(other, "A"))
			select {
			case <-got:
			case <-time.After(10 * time.Second):
				t.Fatal("the request went to the former process")
			}
			if peers := peersOf(other); peers[former.stream.cfg.Process] != 0 || peers[third.stream.cfg.Process] != 2 {
				t.Errorf("it has %d connections with the former process and %d with another node, want none and 2", peers[former.stream.cfg.Process],
					peers[third.stream.cfg.Process])
			}
		})
	}
}

// grantAll grants each vote.
func grantAll(ctx context.Context, tr *Transport) {
	for {
		select {
		case rpc := <-tr.Consumer():
			rpc.Respond(&raft.RequestVoteResponse{Granted: true}, nil)
		case <-ctx.Done():
			return
		}
	}
}

// peersOf counts a transport's connections by the process at the other end.
func peersOf(tr *Transport) map[uint64]int {
	tr.stream.conns.mu.Lock()
	defer tr.stream.conns.mu.Unlock()
	of := map[uint64]int{}
	for c := range tr.stream.conns.open {
		of[c.process]++
	}
	return of
}
