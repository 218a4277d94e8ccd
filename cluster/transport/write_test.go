package transport

import (
	"testing"

	"github.com/hashicorp/raft"
)

// TestHeartbeatsDuringAWrite: while Raft waits for a write of entries, heartbeats of their
// leader are answered, and nothing else is.
func TestHeartbeatsDuringAWrite(t *testing.T) {
	const term = 7
	entry := []*raft.Log{{Index: 1, Term: term}}
	cases := []struct {
		name string
		// writing is the term of the entries in flight, 0 for none; seen is that of a vote
		// request before.
		writing, seen uint64
		request       raft.AppendEntriesRequest
		answered      bool
	}{
		{"no write", 0, 0, raft.AppendEntriesRequest{Term: term}, false},
		{"a heartbeat of their leader", term, 0, raft.AppendEntriesRequest{Term: term}, true},
		{"a heartbeat of an older leader", term, 0, raft.AppendEntriesRequest{Term: term - 1}, false},
		{"a heartbeat of a newer leader", term, 0, raft.AppendEntriesRequest{Term: term + 1}, false},
		{"a candidate of a newer term", term, term + 1, raft.AppendEntriesRequest{Term: term}, false},
		{"a candidate of the same term", term, term, raft.AppendEntriesRequest{Term: term}, true},
		{"entries", term, 0, raft.AppendEntriesRequest{Term: term, Entries: entry}, false},
		{"a question for an entry", term, 0, raft.AppendEntriesRequest{Term: term, PrevLogEntry: 1, PrevLogTerm: term}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			a, sender := start(t, b, "A", nil), start(t, b, "B", nil)
			to := raft.ServerID(idOf("A"))
			if c.seen > 0 {
				seen := make(chan error, 1)
				go func() {
					seen <- sender.RequestVote(to, "", &raft.RequestVoteRequest{RPCHeader: header("B"), Term: c.seen}, &raft.RequestVoteResponse{})
				}()
				vote := <-a.Consumer()
				vote.Respond(&raft.RequestVoteResponse{}, nil)
				must(t, <-seen)
			}
			a.Writing(c.writing)
			c.request.RPCHeader = header("B")
			answers := make(chan raft.AppendEntriesResponse, 1)
			go func() {
				var resp raft.AppendEntriesResponse
				must(t, sender.AppendEntries(to, "", &c.request, &resp))
				answers <- resp
			}()
			select {
			case rpc := <-a.Consumer():
				if c.answered {
					t.Error("Raft got it")
				}
				rpc.Respond(&raft.AppendEntriesResponse{}, nil)
				<-answers
			case resp := <-answers:
				if !c.answered || !resp.Success || resp.Term != term {
					t.Errorf("answered with %+v", resp)
				}
			}
		})
	}
}
