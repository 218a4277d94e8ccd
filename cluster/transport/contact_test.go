package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// leads lets one node send a heartbeat as the leader of term, which the other answers.
func leads(t *testing.T, leader *Transport, follower *Transport, tag string, term uint64) {
	t.Helper()
	id := follower.stream.self
	sent := make(chan error, 1)
	go func() {
		sent <- leader.AppendEntries(id, Address(id), &raft.AppendEntriesRequest{RPCHeader: header(tag), Term: term},
			&raft.AppendEntriesResponse{})
	}()
	take(t, follower.Consumer())
	must(t, <-sent)
}

// TestTheEndOfALeaderIsNoticed: a process that ends closes its connections.
func TestTheEndOfALeaderIsNoticed(t *testing.T) {
	b := newBook()
	leader, follower := start(t, b, "A", nil), start(t, b, "B", nil)
	if c := follower.Contact(); c != (Contact{}) {
		t.Errorf("before there was a leader: %+v", c)
	}
	leads(t, leader, follower, "A", 3)
	if c := follower.Contact(); c.Term != 3 || c.Leader != raft.ServerID(idOf("A")) || !c.Connected || time.Since(c.Heard) > time.Minute {
		t.Errorf("with a leader: %+v", c)
	}
	if answers, err := follower.Answers(t.Context(), raft.ServerID(idOf("A"))); !answers || err != nil {
		t.Errorf("a leader that lives answers: %v, %v", answers, err)
	}
	must(t, leader.Close())
	select {
	case <-follower.Lost():
	case <-time.After(10 * time.Second):
		t.Fatal("the end was not noticed")
	}
	if c := follower.Contact(); c.Term != 3 || c.Connected {
		t.Errorf("after the end: %+v", c)
	}
	if answers, err := follower.Answers(t.Context(), raft.ServerID(idOf("A"))); answers || err == nil {
		t.Errorf("a leader that is gone answers: %v, %v", answers, err)
	}
}

// TestARefusalIsAnAnswer: a member that refuses a greeting is running; another node's refusal is no
// sign of the member.
func TestARefusalIsAnAnswer(t *testing.T) {
	b, others := newBook(), newBook()
	start(t, others, "A", nil)
	a, _ := others.Lookup(idOf("A"))
	b.put(a)
	follower := start(t, b, "B", nil)
	if answers, err := follower.Answers(t.Context(), raft.ServerID(idOf("A"))); !answers || err == nil {
		t.Errorf("%v, %v", answers, err)
	}
	if answers, err := follower.Answers(t.Context(), raft.ServerID(idOf("C"))); answers || !errors.Is(err, ErrUnknownPeer) {
		t.Errorf("an unknown node: %v, %v", answers, err)
	}
	b.put(Peer{ID: idOf("D"), Tag: "D", Address: a.Address})
	var refused *RefusedError
	if answers, err := follower.Answers(t.Context(), raft.ServerID(idOf("D"))); answers || !errors.As(err, &refused) {
		t.Errorf("another node at the address: %v, %v", answers, err)
	}
}

// TestOnlyTheLastConnectionCounts: Lost reports the end of a member's last connection, if the
// other end closed it.
func TestOnlyTheLastConnectionCounts(t *testing.T) {
	type ends struct{ here, there net.Conn }
	for _, tt := range []struct {
		name string
		end  func(s *conns, first, second, dialled ends)
		lost bool
	}{
		{"one of two", func(_ *conns, first, _, _ ends) { _ = first.there.Close() }, false},
		{"both", func(_ *conns, first, second, _ ends) { _, _ = first.there.Close(), second.there.Close() }, true},
		{"one that was dialled from here", func(_ *conns, _, _, dialled ends) { _ = dialled.there.Close() }, false},
		{"both were closed here", func(s *conns, _, _, _ ends) { s.closeIf(func(*conn) bool { return true }) }, false},
		{"nothing came in time", func(_ *conns, first, second, _ ends) {
			_, _ = first.here.SetReadDeadline(time.Unix(1, 0)), second.here.SetReadDeadline(time.Unix(1, 0))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newConns()
				var reading sync.WaitGroup
				connect := func(accepted bool) ends {
					here, there := net.Pipe()
					c := &conn{Conn: here, raw: here, peer: "A", accepted: accepted}
					s.add(c)
					reading.Go(func() { _, _ = c.Read(make([]byte, 1)) })
					return ends{here, there}
				}
				first, second, dialled := connect(true), connect(true), connect(false)
				synctest.Wait()
				tt.end(s, first, second, dialled)
				synctest.Wait()
				if got := len(s.lost) > 0; got != tt.lost {
					t.Errorf("the loss was told: %v, want %v", got, tt.lost)
				}
				for _, e := range []ends{first, second, dialled} {
					_ = e.there.Close()
				}
				reading.Wait()
			})
		})
	}
}

// TestACampaignIsCheckedWhereRequestsArrive: a campaign after a term is queued only if no newer
// request was seen, and withdrawn if one arrives.
func TestACampaignIsCheckedWhereRequestsArrive(t *testing.T) {
	heartbeat := &raft.AppendEntriesRequest{RPCHeader: header("A"), Term: 3}
	for _, tt := range []struct {
		name      string
		before    any
		term      uint64
		after     any
		change    func(*Transport)
		campaigns bool
	}{
		{name: "after the leader's term", before: heartbeat, term: 3, campaigns: true},
		{name: "after an earlier term", before: heartbeat, term: 2},
		{name: "after a term that nobody led", before: heartbeat, term: 4},
		{name: "there is a candidate", before: &raft.RequestVoteRequest{RPCHeader: header("C"), Term: 4}, term: 3},
		{name: "a leader comes while it waits", before: heartbeat, term: 3, after: &raft.AppendEntriesRequest{RPCHeader: header("C"), Term: 4}},
		{name: "the leader comes back while it waits", before: heartbeat, term: 3, after: heartbeat},
		{name: "a snapshot is being installed", before: &raft.InstallSnapshotRequest{RPCHeader: header("A"), Term: 3}, term: 3},
		{
			name: "too few voters have accepted this process", before: heartbeat, term: 3,
			change: func(tr *Transport) { tr.inbound.gate = gateOf(t, "ABC", "") },
		},
		{name: "this node has stepped down", before: heartbeat, term: 3, change: func(tr *Transport) { tr.StepDown(2, time.Hour, time.Hour) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := make(chan raft.RPC)
				i := bareInbound(from)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				tr := &Transport{inbound: i, stream: &stream{ctx: ctx, conns: newConns()}}
				if tt.change != nil {
					tt.change(tr)
				}
				go i.run(ctx)
				arrive := func(request any) {
					if request != nil {
						from <- raft.RPC{Command: request, RespChan: make(chan raft.RPCResponse, 1)}
					}
				}
				arrive(tt.before)
				tr.Campaign(ctx, tt.term)
				arrive(tt.after)
				synctest.Wait()
				var campaigned atomic.Int32
				go func() {
					for {
						select {
						case rpc := <-i.toRaft:
							if r, ok := rpc.Command.(*raft.TimeoutNowRequest); ok {
								campaigned.Add(1)
								if r.ProtocolVersion != raft.ProtocolVersionMax {
									t.Errorf("protocol version %d", r.ProtocolVersion)
								}
							}
						case <-ctx.Done():
							return
						}
					}
				}()
				synctest.Wait()
				if got := campaigned.Load() == 1; got != tt.campaigns {
					t.Errorf("it campaigns: %v, want %v", got, tt.campaigns)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
