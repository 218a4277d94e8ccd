package commit

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

var discard = slog.New(slog.DiscardHandler)

// Events that nobody counts.
var (
	untold = Events{
		Cut: func(int, time.Duration) {}, Answered: func(int, int, int, time.Duration) {},
		GivenUp: func(int, error) {},
	}
	untoldEntries = BatcherEvents{Appending: func() {}, Appended: func(int, int, int, time.Duration, error) {}}
)

// noResults bounds results as if they did not count.
func noResults([]byte) int { return 0 }

// countingOpener gives out sessions 1, 2, 3…, or err.
type countingOpener struct {
	mu       sync.Mutex
	sessions uint64
	err      error
}

func (o *countingOpener) Open(context.Context) (uint64, []byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, nil, o.err
	}
	o.sessions++
	return o.sessions, []byte("origin"), nil
}

// sending is one group on its way to a leader. The test answers it.
type sending struct {
	ctx    context.Context
	leader string
	raw    string
	group  raftlog.Group
	answer chan sent
}

type sent struct {
	result raftlog.GroupResult
	err    error
}

// apply answers a sending with each operation as its own result.
func (s sending) apply() {
	s.answer <- sent{result: raftlog.GroupResult{Status: raftlog.Applied, Results: s.group.Operations}}
}

func (s sending) status(status raftlog.Status) {
	s.answer <- sent{result: raftlog.GroupResult{Status: status}}
}

func (s sending) fail(err error) { s.answer <- sent{err: err} }

// decodeGroup decodes a group by way of an entry of it alone.
func decodeGroup(group []byte) (raftlog.Group, error) {
	entry := raftlog.AppendEntry(nil, raftlog.Header{Format: raftlog.FormatVersion}, [][]byte{group})
	decoded, err := raftlog.DecodeEntry(entry, raftlog.FormatVersion)
	if err != nil {
		return raftlog.Group{}, err
	}
	return decoded.Groups[0], nil
}

// manualSender shows each sending to the test, and ends it when its context
// ends.
type manualSender chan sending

func (m manualSender) Send(ctx context.Context, leader string, group []byte) (raftlog.GroupResult, error) {
	g, err := decodeGroup(group)
	if err != nil {
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.Invalid, err)
	}
	s := sending{ctx: ctx, leader: leader, raw: string(group), group: g, answer: make(chan sent, 1)}
	select {
	case m <- s:
	case <-ctx.Done():
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.Deadline, ctx.Err())
	}
	select {
	case a := <-s.answer:
		return a.result, a.err
	case <-ctx.Done():
		return raftlog.GroupResult{}, ctx.Err()
	}
}

// rig is a Gatherer with everything around it in a test's hands.
type rig struct {
	t      *testing.T
	g      *Gatherer
	sender manualSender
	opener *countingOpener
}

// newRig starts a Gatherer that has a leader and a quorum. It is closed at the
// end of the test. It is made for a synctest bubble.
func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := newLeaderlessRig(t, change)
	r.g.SetLeader("a")
	synctest.Wait()
	return r
}

// newLeaderlessRig is newRig without a leader.
func newLeaderlessRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, sender: make(manualSender), opener: &countingOpener{}}
	cfg := Config{Sender: r.sender, Opener: r.opener, Logger: discard, Events: untold, ResultBound: noResults}
	if change != nil {
		change(&cfg)
	}
	g := New(cfg)
	r.g = g
	g.SetQuorum(true)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		g.Close(ctx)
	})
	synctest.Wait()
	return r
}

// proposeResult is what a caller of Propose got, and when.
type proposeResult struct {
	result string
	err    error
	at     time.Time
}

// propose calls Propose on a goroutine of its own and returns once the operation waits or
// is in flight.
func (r *rig) propose(ctx context.Context, operation string) <-chan proposeResult {
	c := make(chan proposeResult, 1)
	go func() {
		result, err := r.g.Propose(ctx, []byte(operation))
		c <- proposeResult{string(result), err, time.Now()}
	}()
	synctest.Wait()
	return c
}

// next returns the next sending, which must be in flight now.
func (r *rig) next() sending {
	r.t.Helper()
	synctest.Wait()
	select {
	case s := <-r.sender:
		return s
	default:
		r.t.Fatal("no group is being sent")
		return sending{}
	}
}

// none checks that nothing is being sent.
func (r *rig) none() {
	r.t.Helper()
	synctest.Wait()
	select {
	case s := <-r.sender:
		r.t.Fatalf("group %d of session %d is being sent", s.group.Sequence, s.group.Session)
	default:
	}
}

// get returns the caller's answer, which must be there now.
func get(t *testing.T, c <-chan proposeResult) proposeResult {
	t.Helper()
	synctest.Wait()
	select {
	case a := <-c:
		return a
	default:
		t.Fatal("the caller was not answered")
		return proposeResult{}
	}
}

// pending checks that the caller still waits.
func pending(t *testing.T, c <-chan proposeResult) {
	t.Helper()
	synctest.Wait()
	select {
	case a := <-c:
		t.Fatalf("the caller was answered: %q, %v", a.result, a.err)
	default:
	}
}

// want checks an error's outcome and reason.
func want(t *testing.T, err error, o outcome.Outcome, r outcome.Reason) {
	t.Helper()
	if err == nil || outcome.Of(err) != o || outcome.ReasonOf(err) != r {
		t.Fatalf("got %v, want %v: %v", err, o, r)
	}
}

// wantOK checks an answer that the operation itself came back as its result.
func wantOK(t *testing.T, a proposeResult, operation string) {
	t.Helper()
	if a.err != nil || a.result != operation {
		t.Fatalf("got %q, %v, want %q", a.result, a.err, operation)
	}
}

// bubble runs a test in virtual time. At its end every goroutine must be gone.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
