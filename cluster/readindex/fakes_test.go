package readindex

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/internal/outcome"
)

var (
	bg        = context.Background()
	errBroken = errors.New("broken")
)

// fakeRaft is a Raft in a test's hands.
type fakeRaft struct {
	mu       sync.Mutex
	commit   uint64
	term     uint64
	ready    Ready
	notReady bool
	// verify stands for the quorum check.
	verify   func(ctx context.Context) error
	verified int
}

func (r *fakeRaft) CommitIndex() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.commit
}

func (r *fakeRaft) Term() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.term
}

func (r *fakeRaft) Ready() (Ready, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready, !r.notReady
}

func (r *fakeRaft) Verify(ctx context.Context) error {
	r.mu.Lock()
	r.verified++
	verify := r.verify
	r.mu.Unlock()
	if verify == nil {
		return nil
	}
	return verify(ctx)
}

func (r *fakeRaft) change(f func(r *fakeRaft)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

// rounds returns how many quorum checks there were.
func (r *fakeRaft) rounds() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verified
}

func newFakeRaft() *fakeRaft {
	return &fakeRaft{commit: 20, term: 3, ready: Ready{Term: 3, Barrier: 10, Applied: 8}}
}

// read is what a caller got.
type read struct {
	index uint64
	err   error
}

// async calls f on a goroutine of its own and returns once nothing moves.
func async(f func() (uint64, error)) <-chan read {
	c := make(chan read, 1)
	go func() {
		index, err := f()
		c <- read{index, err}
	}()
	synctest.Wait()
	return c
}

func get(t *testing.T, c <-chan read) read {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		return r
	default:
		t.Fatal("the caller was not answered")
		return read{}
	}
}

func want(t *testing.T, err error, reason outcome.Reason) {
	t.Helper()
	if err == nil || outcome.Of(err) != outcome.NotApplied || outcome.ReasonOf(err) != reason {
		t.Fatalf("got %v, want not applied: %v", err, reason)
	}
}

// leaders is WaitLeader in a test's hands.
type leaders struct {
	mu     sync.Mutex
	leader string
	err    error
	asked  int
}

func (l *leaders) WaitLeader(context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	return l.leader, l.err
}

// remote is AskRemote in a test's hands.
type remote func(ctx context.Context, leader string) (uint64, error)

// state is a State that has applied everything up to an index.
type state struct {
	mu      sync.Mutex
	applied uint64
	changed chan struct{}
}

func (s *state) WaitApplied(ctx context.Context, index uint64) error {
	for {
		s.mu.Lock()
		applied, changed := s.applied, s.changed
		s.mu.Unlock()
		if applied >= index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *state) advance(index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = index
	close(s.changed)
	s.changed = make(chan struct{})
}

// rig is a Reader with everything around it in a test's hands.
type rig struct {
	raft    *fakeRaft
	leaders *leaders
	state   *state
	local   *Local
	reader  *Reader
}

// limit is the Limit of a rig's Reader.
const limit = 2 * time.Second

func newRig(t *testing.T, ask remote) *rig {
	t.Helper()
	r := &rig{raft: newFakeRaft(), leaders: &leaders{leader: "self"}, state: &state{changed: make(chan struct{})}}
	r.local = NewLocal(r.raft)
	if ask == nil {
		ask = func(context.Context, string) (uint64, error) { return 0, errBroken }
	}
	r.reader = New(Config{
		Self: "self", WaitLeader: r.leaders.WaitLeader, Local: r.local, AskRemote: ask, WaitApplied: r.state.WaitApplied, Limit: limit,
	})
	t.Cleanup(func() {
		r.reader.Close()
		r.local.Close()
	})
	return r
}

// sleepPast waits a little longer than d.
func sleepPast(d time.Duration) {
	time.Sleep(d + lastBackoff)
	synctest.Wait()
}
