package transport

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftlogger"
)

// startBare starts a node that speaks the library's protocol as it is.
func startBare(t testing.TB, b *book, tag string) *raft.NetworkTransport {
	t.Helper()
	cfg := configOf(b, tag, listen(t)).withDefaults()
	b.put(Peer{ID: cfg.LocalID, Tag: tag, Address: cfg.Listener.Addr().String()})
	bare := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: byID{}, Logger: raftlogger.New(discard), Stream: newStream(cfg), MaxPool: 1,
		Timeout: DefaultTimeout, MaxRPCsInFlight: 1,
	})
	t.Cleanup(func() { _ = bare.Close() })
	return bare
}

// take answers the next request with success, and returns it.
func take(t *testing.T, from <-chan raft.RPC) any {
	t.Helper()
	select {
	case rpc := <-from:
		rpc.Respond(&raft.AppendEntriesResponse{Success: true}, nil)
		return rpc.Command
	case <-time.After(10 * time.Second):
		t.Fatal("no request arrives")
		return nil
	}
}

// TestCommitIndexIsBoundedByTheEntriesSent: "set commitIndex = min(leaderCommit,
// index of last new entry)" (figure 2).
func TestCommitIndexIsBoundedByTheEntriesSent(t *testing.T) {
	cases := []struct {
		prev, entries, commit, want uint64
	}{
		{prev: 0, entries: 0, commit: 0, want: 0}, // A heartbeat.
		{prev: 3, entries: 0, commit: 4, want: 3}, // What the library sends to a returning leader.
		{prev: 3, entries: 0, commit: 3, want: 3},
		{prev: 3, entries: 2, commit: 9, want: 5},
		{prev: 3, entries: 2, commit: 4, want: 4},
		{prev: 0, entries: 2, commit: 9, want: 2},
	}
	b := newBook()
	a, bare := start(t, b, "A", nil), startBare(t, b, "B")
	to := raft.ServerID(idOf("A"))
	for _, c := range cases {
		t.Run(fmt.Sprintf("prev=%d,entries=%d,commit=%d", c.prev, c.entries, c.commit), func(t *testing.T) {
			sent := &raft.AppendEntriesRequest{Term: 2, PrevLogEntry: c.prev, PrevLogTerm: 1, LeaderCommitIndex: c.commit}
			for i := range c.entries {
				sent.Entries = append(sent.Entries, &raft.Log{Index: c.prev + 1 + i, Term: 2})
			}
			failed := make(chan error, 1)
			go func() {
				failed <- bare.AppendEntries(to, Address(to), sent, &raft.AppendEntriesResponse{})
			}()
			got := take(t, a.Consumer()).(*raft.AppendEntriesRequest)
			must(t, <-failed)
			if got.LeaderCommitIndex != c.want {
				t.Errorf("the commit index that arrives is %d, want %d", got.LeaderCommitIndex, c.want)
			}
		})
	}
}

// TestRequestsAreInspectedWhileRaftIsBusy: the requests of all connections are inspected while
// Raft takes none, and reach Raft in their order.
func TestRequestsAreInspectedWhileRaftIsBusy(t *testing.T) {
	from := make(chan raft.RPC)
	i := bareInbound(from)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		i.run(t.Context())
	}()
	for term := range uint64(3) {
		from <- raft.RPC{Command: &raft.RequestVoteRequest{Term: term}}
	}
	for term := range uint64(3) {
		if got := (<-i.toRaft).Command.(*raft.RequestVoteRequest).Term; got != term {
			t.Errorf("request %d is the one with the number %d", term, got)
		}
	}
	t.Cleanup(func() { <-stopped })
}

// TestAFormerLeaderSendsNothing: as soon as the next leader's first request is here,
// and may change the log from which the library reads.
func TestAFormerLeaderSendsNothing(t *testing.T) {
	b := newBook()
	a, bare := start(t, b, "A", nil), startBare(t, b, "B")
	out := installing{t, a, raft.ServerID(idOf("B")), bare.Consumer()}
	in := installing{t, bare, raft.ServerID(idOf("A")), a.Consumer()}
	sent := out.append(&raft.AppendEntriesRequest{Term: 4})
	out.next().Respond(&raft.AppendEntriesResponse{Term: 4, Success: true}, nil)
	if !<-sent {
		t.Fatal("a leader's request failed")
	}
	received := in.append(&raft.AppendEntriesRequest{Term: 5})
	request := in.next()
	if <-out.append(&raft.AppendEntriesRequest{Term: 4}) {
		t.Error("a former leader's request was sent")
	}
	request.Respond(&raft.AppendEntriesResponse{Term: 5, Success: true}, nil)
	<-received
	sent = out.append(&raft.AppendEntriesRequest{Term: 6})
	out.next().Respond(&raft.AppendEntriesResponse{Term: 6, Success: true}, nil)
	if !<-sent {
		t.Error("a leader's request failed")
	}
}

// BenchmarkAppend measures one append of one entry there and back, to a node of the
// library as it is, and to one behind inbound.
func BenchmarkAppend(b *testing.B) {
	members := newBook()
	from := startBare(b, members, "A")
	for _, to := range []struct {
		name, tag string
		requests  <-chan raft.RPC
	}{
		{"library", "B", startBare(b, members, "B").Consumer()},
		{"inbound", "C", start(b, members, "C", nil).Consumer()},
	} {
		b.Run(to.name, func(b *testing.B) {
			go func() {
				for range b.N {
					rpc := <-to.requests
					rpc.Respond(&raft.AppendEntriesResponse{Success: true}, nil)
				}
			}()
			r := &raft.AppendEntriesRequest{
				RPCHeader: header("A"), Term: 1, PrevLogEntry: 1, PrevLogTerm: 1,
				Entries: []*raft.Log{{Index: 2, Term: 1, Data: make([]byte, 200)}},
			}
			for range b.N {
				must(b, from.AppendEntries(raft.ServerID(idOf(to.tag)), "", r, &raft.AppendEntriesResponse{}))
			}
		})
	}
}
