package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// TestMajorityOfAnswers: only answers count that came in the term asked about,
// from voters, to messages that were sent after the question began.
func TestMajorityOfAnswers(t *testing.T) {
	voters := []raft.ServerID{"a", "b", "c"}
	cases := []struct {
		name   string
		voters []raft.ServerID
		hear   func(a *answers, before, after SendSeq)
		want   bool
		err    error
	}{
		{"nobody", voters, func(*answers, SendSeq, SendSeq) {}, false, nil},
		{"alone", voters[:1], func(*answers, SendSeq, SendSeq) {}, true, nil},
		{"not a voter itself", voters[1:2], func(*answers, SendSeq, SendSeq) {}, false, nil},
		{"one more", voters, func(a *answers, _, after SendSeq) { a.answered("b", after, 7, 7, 0) }, true, nil},
		{"sent before", voters, func(a *answers, before, _ SendSeq) { a.answered("b", before, 7, 7, 0) }, false, nil},
		{"sent before, heard last", voters, func(a *answers, before, after SendSeq) {
			a.answered("b", after, 7, 7, 0)
			a.answered("b", before, 7, 7, 0)
		}, true, nil},
		{"of an earlier term", voters, func(a *answers, _, after SendSeq) { a.answered("b", after, 6, 6, 0) }, false, nil},
		{"from a newer term", voters, func(a *answers, _, after SendSeq) {
			a.answered("b", after, 7, 7, 0)
			a.answered("c", after, 7, 8, 0)
		}, false, ErrNewerTerm},
		{"no voter", voters, func(a *answers, _, after SendSeq) { a.answered("d", after, 7, 7, 0) }, false, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := newAnswers()
			before := a.next()
			since := a.next()
			c.hear(a, before, a.next())
			got, changed, err := a.enough(since, 7, c.voters, "a")
			if got != c.want || !errors.Is(err, c.err) {
				t.Fatalf("enough is %v, %v; want %v, %v", got, err, c.want, c.err)
			}
			if got || err != nil {
				return
			}
			a.answered("b", a.next(), 7, 7, 0)
			select {
			case <-changed:
			default:
				t.Error("an answer wakes nobody who waits for one")
			}
		})
	}
}

// TestMatchIsFresh: a leader replicates to a node only if that has accepted an append lately,
// in this term. Heartbeats prove nothing.
func TestMatchIsFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{answers: newAnswers()}
		for _, tt := range []struct {
			after      time.Duration
			term, want uint64
		}{{0, 3, 10}, {0, 2, 0}, {0, 4, 0}, {freshMatch - 1, 3, 10}, {freshMatch, 3, 0}} {
			tr.answers.answered("b", tr.answers.next(), 3, 3, 10)
			time.Sleep(tt.after)
			if got := tr.Match("b", tt.term); got != tt.want {
				t.Errorf("in term %d the match is %d after %v, want %d", tt.term, got, tt.after, tt.want)
			}
		}
		if got := tr.Match("c", 3); got != 0 {
			t.Errorf("the match of a node that never answered is %d", got)
		}
	})
	b := newBook()
	from, to := start(t, b, "A", nil), startBare(t, b, "B")
	id := raft.ServerID(idOf("B"))
	send := func(success bool, r *raft.AppendEntriesRequest) {
		go func() {
			rpc := <-to.Consumer()
			rpc.Respond(&raft.AppendEntriesResponse{Term: 3, Success: success}, nil)
		}()
		r.RPCHeader, r.Term = header("A"), 3
		must(t, from.AppendEntries(id, Address(id), r, &raft.AppendEntriesResponse{}))
	}
	send(true, &raft.AppendEntriesRequest{})
	send(false, &raft.AppendEntriesRequest{PrevLogEntry: 10, PrevLogTerm: 2})
	if got := from.Match(id, 3); got != 0 {
		t.Errorf("after a heartbeat and a refusal the match is %d", got)
	}
	send(true, &raft.AppendEntriesRequest{PrevLogEntry: 10, PrevLogTerm: 2, Entries: []*raft.Log{{Index: 11, Term: 3}}})
	if got := from.Match(id, 3); got != 11 {
		t.Errorf("after an append the match is %d, want 11", got)
	}
}

// TestAVoteIsAskedForAgainOverANewConnection: idle connections lead to a process of the
// member that has ended, or to its machine before that lost power.
func TestAVoteIsAskedForAgainOverANewConnection(t *testing.T) {
	ca := newAuthority(t)
	for _, tt := range []struct {
		name    string
		ask     func(from, to *Transport, refusal error) error
		secured bool
		// read and write are the errors of a connection whose other end is gone.
		read, write error
	}{
		{"vote", askVote, false, io.EOF, nil},
		{"vote with TLS", askVote, true, io.EOF, nil},
		{"pre-vote", askPreVote, false, io.EOF, syscall.EPIPE},
		{"vote, and the machine is up again and resets the connection", askVote, false, syscall.ECONNRESET, nil},
		{"the same with TLS", askVote, true, syscall.ECONNRESET, nil},
		{"vote, and the machine has not answered for long", askVote, false, syscall.ETIMEDOUT, syscall.ETIMEDOUT},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var gone atomic.Bool
			b := newBook()
			begin := func(tag string) *Transport {
				return start(t, b, tag, func(c *Config) {
					if tt.secured {
						ca.secured(tag)(c)
					}
					c.DialContext = func(ctx context.Context, address string) (net.Conn, error) {
						conn, err := DialTCP(ctx, address)
						if err != nil || gone.Load() {
							return conn, err
						}
						return lostConn{conn, &gone, tt.read, tt.write}, nil
					}
				})
			}
			from, to := begin("A"), begin("B")
			fillPool(t, from, to)
			if err := to.Close(); err != nil {
				t.Fatal(err)
			}
			gone.Store(true)
			if err := tt.ask(from, begin("B"), nil); err != nil {
				t.Errorf("the member's new process: %v", err)
			}
		})
	}
}

// lostConn is a connection whose use fails, or writes into the void, once its other end is
// gone.
type lostConn struct {
	net.Conn
	gone        *atomic.Bool
	read, write error
}

func (c lostConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && c.gone.Load() {
		return 0, c.failure("read", c.read)
	}
	return n, err
}

func (c lostConn) Write(b []byte) (int, error) {
	switch {
	case !c.gone.Load():
		return c.Conn.Write(b)
	case c.write == nil:
		return len(b), nil
	}
	return 0, c.failure("write", c.write)
}

// failure is an error as package net returns it.
func (c lostConn) failure(op string, err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(op, err)}
}

// TestAVoteThatIsRefusedIsAskedForOnce: an answer is an answer, and a member that is down
// is not dialled again.
func TestAVoteThatIsRefusedIsAskedForOnce(t *testing.T) {
	var dials atomic.Int64
	b := newBook()
	from := start(t, b, "A", func(c *Config) {
		c.DialContext = func(ctx context.Context, address string) (net.Conn, error) {
			dials.Add(1)
			return DialTCP(ctx, address)
		}
	})
	to := start(t, b, "B", nil)
	refusal := errors.New("not now")
	if err := askVote(from, to, refusal); err == nil || err.Error() != refusal.Error() {
		t.Errorf("the error of a refused vote is %v", err)
	}
	if err := askVote(from, to, nil); err != nil {
		t.Errorf("it was asked for twice: %v", err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	dials.Store(0)
	if err := askVote(from, to, nil); err == nil || dials.Load() != 1 {
		t.Errorf("the vote of a member that is down: %v, after %d dials", err, dials.Load())
	}
}

// fillPool opens as many connections as are kept.
func fillPool(t *testing.T, from, to *Transport) {
	t.Helper()
	var asking sync.WaitGroup
	for range DefaultMaxPool {
		asking.Go(func() {
			if err := from.RequestVote(raft.ServerID(idOf("B")), "", &raft.RequestVoteRequest{Term: 1}, &raft.RequestVoteResponse{}); err != nil {
				t.Error(err)
			}
		})
	}
	var waiting []raft.RPC
	for range DefaultMaxPool {
		waiting = append(waiting, <-to.Consumer())
	}
	for _, rpc := range waiting {
		rpc.Respond(&raft.RequestVoteResponse{}, nil)
	}
	asking.Wait()
}

// askVote asks for a vote, which to answers with an error or grants.
func askVote(from, to *Transport, refusal error) error {
	return answering(to, &raft.RequestVoteResponse{Granted: true}, refusal, func() error {
		return from.RequestVote(raft.ServerID(idOf("B")), "", &raft.RequestVoteRequest{Term: 1}, &raft.RequestVoteResponse{})
	})
}

// askPreVote does the same for a pre-vote.
func askPreVote(from, to *Transport, refusal error) error {
	return answering(to, &raft.RequestPreVoteResponse{Granted: true}, refusal, func() error {
		return from.RequestPreVote(raft.ServerID(idOf("B")), "", &raft.RequestPreVoteRequest{Term: 1}, &raft.RequestPreVoteResponse{})
	})
}

// answering has a node answer one request that a call makes.
func answering(to *Transport, answer any, refusal error, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case rpc := <-to.Consumer():
		rpc.Respond(answer, refusal)
		return <-done
	case err := <-done:
		return err
	}
}
