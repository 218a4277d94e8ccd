package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftguard"
)

// ErrNewerTerm means that a node answered from a newer term: another leader was or will be
// elected.
var ErrNewerTerm = errors.New("a node answered from a newer term")

// errNewerLeader is the library's error for a message of a former leader.
var errNewerLeader = errors.New("another node leads a newer term")

// SendSeq counts the messages that this node has sent.
type SendSeq uint64

// answers holds, per node, the node's answers to this node's messages as a leader. The library does
// not relate an answer to its message: after a pause of this process, it would take an answer from
// before the pause as a sign that it still leads.
type answers struct {
	mu  sync.Mutex
	seq SendSeq
	// newest is the newest term of any answer.
	newest uint64
	// heard is when the newest answer came to a leader of heardTerm.
	heardTerm uint64
	heard     time.Time
	byID      map[raft.ServerID]*progress
	// changed is closed at the next answer; nil if no caller waits.
	changed chan struct{}
}

type progress struct {
	// sent is the position of the newest message of a leader of term that the node has
	// answered in the same term.
	term uint64
	sent SendSeq
	// match is an index up to which the node's log equals that of the leader of matchTerm, and
	// matched is when the node's answer arrived.
	matchTerm, match uint64
	matched          time.Time
	// unanswered is the position of the oldest entries that the node has not answered, 0 if
	// there are none. Heartbeats have separate connections and are small: a link that loses
	// large packets passes them, so the leader keeps its lease.
	unanswered SendSeq
}

// freshMatch is the time for which an answer to an append shows that the leader replicates
// to the node. A leader sends an append at least every commit timeout.
const freshMatch = 2 * time.Second

func newAnswers() *answers { return &answers{byID: map[raft.ServerID]*progress{}} }

// of returns a node's progress. The caller holds the lock.
func (a *answers) of(id raft.ServerID) *progress {
	p := a.byID[id]
	if p == nil {
		p = &progress{}
		a.byID[id] = p
	}
	return p
}

func (a *answers) next() SendSeq {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq++
	return a.seq
}

// send returns the position of a message with this number of entries to a node.
func (a *answers) send(id raft.ServerID, entries int) SendSeq {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq++
	if p := a.of(id); entries > 0 && p.unanswered == 0 {
		p.unanswered = a.seq
	}
	return a.seq
}

// answered records an answer from term to the message sent, of term asked. match is the last entry
// of an append that the node has accepted; 0 if there is none. It returns the time since the answer
// before to the leader of the same term; 0 if there was none.
func (a *answers) answered(id raft.ServerID, sent SendSeq, asked, term, match uint64) (gap time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if asked == a.heardTerm {
		gap = now.Sub(a.heard)
	}
	a.heardTerm, a.heard = asked, now
	a.newest = max(a.newest, term)
	p := a.of(id)
	if term == asked && sent > p.sent {
		p.term, p.sent = asked, sent
	}
	if match > 0 {
		p.matchTerm, p.match, p.matched = asked, match, now
	}
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
	return gap
}

// clear records that a node has answered all entries, even by a refusal.
func (a *answers) clear(id raft.ServerID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(id).unanswered = 0
}

// Match returns the index up to which a node's log is known to equal that of the leader of term,
// this node, by the node's newest answer to an append; 0 if there was no answer within 2 s. Without
// a known match the leader sends the node heartbeats, which compare nothing, or a snapshot.
func (t *Transport) Match(id raft.ServerID, term uint64) uint64 {
	t.answers.mu.Lock()
	defer t.answers.mu.Unlock()
	if p := t.answers.of(id); p.matchTerm == term && time.Since(p.matched) < freshMatch {
		return p.match
	}
	return 0
}

// Unanswered returns the number of voters that have not answered entries sent to them before
// the given position.
func (t *Transport) Unanswered(before SendSeq, voters []raft.ServerID) int {
	t.answers.mu.Lock()
	defer t.answers.mu.Unlock()
	n := 0
	for _, id := range voters {
		if at := t.answers.of(id).unanswered; at > 0 && at < before {
			n++
		}
	}
	return n
}

// enough reports whether a majority of the voters, self included, answered in term to
// messages sent after since. If not, it returns a channel that is closed at the next answer.
func (a *answers) enough(since SendSeq, term uint64, voters []raft.ServerID, self raft.ServerID) (bool, <-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.newest > term {
		return false, nil, ErrNewerTerm
	}
	count := 0
	for _, id := range voters {
		if p := a.of(id); id == self || p.term == term && p.sent > since {
			count++
		}
	}
	if count > len(voters)/2 {
		return true, nil, nil
	}
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return false, a.changed, nil
}

// AppendEntries implements raft.Transport.
//
// It sends no message of a former leader once the next leader's first request has arrived.
// The library (v1.7.3) reads the entries of a request one by one, without a lock, and may
// do so seconds after this node stopped leading, if the follower did not answer for a
// while. Meanwhile the new leader's entries replace those of the log: the request could
// combine the previous entry of one leader with entries of another, and a follower would
// store a log that no leader ever had.
func (t *Transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse,
) error {
	if args.Term < t.inbound.led() {
		return errNewerLeader
	}
	if !t.steppedDown.leads(args.Term) {
		return errSteppedDown
	}
	args.Entries = raftguard.WithoutRemoval(id, args.Entries, t.stream.cfg.Configured())
	sent := t.answers.send(id, len(args.Entries))
	if err := t.NetworkTransport.AppendEntries(id, target, args, resp); err != nil {
		if args.PrevLogEntry > 0 {
			t.catchUps.Ended(id)
		}
		return err
	}
	if len(args.Entries) > 0 {
		t.answers.clear(id)
	}
	if moves(resp) {
		t.stream.conns.progressed(string(id))
	}
	match := uint64(0)
	if resp.Success {
		match = args.PrevLogEntry
		if n := len(args.Entries); n > 0 {
			match = args.Entries[n-1].Index
		}
	}
	t.stream.cfg.AnswerHeard(id, t.answers.answered(id, sent, args.Term, resp.Term, match))
	if match > 0 {
		t.catchUps.Matched(id, match, args.LeaderCommitIndex)
	}
	t.acknowledged(id, resp.Term, match, min(match, args.LeaderCommitIndex))
	if resp.Success && len(args.Entries) > 0 && t.stable != nil {
		return t.stable(t.stream.ctx, match)
	}
	return nil
}

// HoldAnswers makes each answer that acknowledges entries wait for this node's own disk:
// stable waits until the disk has the log up to an index. The library counts the leader's
// disk when it hands an entry over, so no other voter may be counted before. Heartbeats are
// not held. HoldAnswers must be called before Raft gets the transport.
func (t *Transport) HoldAnswers(stable func(ctx context.Context, index uint64) error) {
	t.stable = stable
}

func (t *Transport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest,
	resp *raft.RequestVoteResponse,
) error {
	begin := time.Now()
	err := t.retryOnClosedConn(func() error { return t.NetworkTransport.RequestVote(id, target, args, resp) })
	if err == nil {
		t.acknowledged(id, resp.Term, 0, 0)
		t.stream.cfg.VoteAnswered(time.Since(begin))
	}
	return err
}

// retryOnClosedConn repeats a request while its connection turns out to be closed. The
// library (v1.7.3) pools idle connections, detects only by use that a connection leads to a
// member's former process, and does not repeat a request for a vote: after a member's
// restart that costs the election. A vote or a pre-vote may be requested twice.
func (t *Transport) retryOnClosedConn(request func() error) error {
	err := request()
	for range DefaultMaxPool {
		if !endedConnection(err) {
			break
		}
		err = request()
	}
	return err
}

// endedConnection reports whether a request failed because its connection was closed, and
// not by a failed dial, a timeout or the member's answer.
func endedConnection(err error) bool {
	var codec interface{ Cause() error } // The codec's errors of a connection have no Unwrap.
	if errors.As(err, &codec) {
		err = codec.Cause()
	}
	var dial *dialError
	if errors.As(err, &dial) || errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	var broken *net.OpError
	return errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// acknowledged reports to the Witness the disk state that an answer proves of a member. An answer
// to a pre-vote proves nothing: its term is on no disk.
func (t *Transport) acknowledged(id raft.ServerID, term, match, committed uint64) {
	t.stream.cfg.Witness.Acknowledged(string(id), term, match, committed)
}

// SendSeq returns a position after all messages sent before, for AwaitMajority.
func (t *Transport) SendSeq() SendSeq { return t.answers.next() }

// AwaitMajority waits until a majority of the voters has answered messages that this node
// sent after since as the leader of term; this node counts as a voter that answered if it is
// among them. It sends nothing. The error is ErrNewerTerm, or ctx's.
func (t *Transport) AwaitMajority(ctx context.Context, since SendSeq, term uint64, voters []raft.ServerID) error {
	for {
		done, changed, err := t.answers.enough(since, term, voters, t.stream.self)
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// OthersAnswered reports whether a majority of the voters, without this node, has
// answered messages that this node sent after since as the leader of term.
func (t *Transport) OthersAnswered(since SendSeq, term uint64, voters []raft.ServerID) bool {
	const noSelf = ""
	done, _, _ := t.answers.enough(since, term, voters, noSelf)
	return done
}

// Answered reports whether a node has answered a message that this node sent after since as
// the leader of term; always true for this node itself.
func (t *Transport) Answered(since SendSeq, term uint64, id raft.ServerID) bool {
	done, _, _ := t.answers.enough(since, term, []raft.ServerID{id}, t.stream.self)
	return done
}
