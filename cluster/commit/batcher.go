package commit

import (
	"context"
	"slices"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// Batcher is the leader's side of group commit: it receives the undecoded groups of all
// nodes and joins the queued groups into one log entry. A node has one Batcher; it refuses
// every group while the node does not lead. It is safe for concurrent use.
type Batcher struct {
	cfg BatcherConfig

	loop
	waiting []*submission
	// bytes and operations are the sums over the queued groups.
	bytes      int
	operations int
	// leadership is the current leadership; nil if the node does not lead.
	leadership *leadership
}

type submission struct {
	// caller is the context of the submitter, for spans of entries.
	caller     context.Context
	group      []byte
	operations int
	result     raftlog.GroupResult
	err        error
	done       chan struct{}
}

func (s *submission) answer(result raftlog.GroupResult, err error) {
	s.result, s.err = result, err
	close(s.done)
}

// leadership is the time from Lead to StepDown, or to the end of its context.
type leadership struct {
	ctx context.Context
	end context.CancelFunc
	// held means that no entry is proposed yet: see Hold.
	held bool
}

// NewBatcher starts a Batcher, which does not lead before Lead. Close ends it.
func NewBatcher(cfg BatcherConfig) *Batcher {
	b := &Batcher{cfg: cfg.withDefaults()}
	b.start(b.write)
	return b
}

// Lead starts a leadership of this node, which lasts until ctx ends or StepDown is
// called. It may start before the new leader has applied the entries of earlier leaders:
// entries proposed from now on are applied after them.
func (b *Batcher) Lead(ctx context.Context) {
	r := &leadership{}
	r.ctx, r.end = context.WithCancel(ctx)
	b.begin(r)
}

// Hold starts a leadership for which Lead has not been called yet: groups are queued until
// then, instead of being refused and sent again. After HoldLimit the queued groups are
// refused, and new groups at once.
func (b *Batcher) Hold(ctx context.Context) {
	r := &leadership{held: true}
	r.ctx, r.end = context.WithTimeout(ctx, HoldLimit)
	b.begin(r)
}

// begin makes r the current leadership. The previous one ends as with StepDown; groups queued
// while it was held stay queued for r. A stopped Batcher does not lead.
func (b *Batcher) begin(r *leadership) {
	b.mu.Lock()
	before, waiting := b.leadership, []*submission(nil)
	if before != nil && (!before.held || b.stopped) {
		waiting = b.drain()
	}
	b.leadership = r
	b.work.Signal()
	if b.stopped {
		b.leadership, before = nil, r
	}
	b.mu.Unlock()
	if before != nil {
		before.end()
	}
	refuse(waiting, outcome.NewNotApplied(outcome.NotLeader, nil))
	context.AfterFunc(r.ctx, func() { b.endLeadership(r) })
}

// StepDown ends the leadership. When it returns, queued groups have been refused as
// NotApplied(NotLeader); groups in an entry get Unknown(LeadershipLost) unless the log
// reports their outcome soon.
func (b *Batcher) StepDown() {
	b.mu.Lock()
	r := b.leadership
	b.mu.Unlock()
	if r != nil {
		b.endLeadership(r)
	}
}

func (b *Batcher) endLeadership(r *leadership) {
	r.end()
	b.mu.Lock()
	if b.leadership != r {
		b.mu.Unlock()
		return
	}
	b.leadership = nil
	waiting := b.drain()
	b.mu.Unlock()
	refuse(waiting, outcome.NewNotApplied(outcome.NotLeader, nil))
}

// drain empties the queue. The caller holds the lock and answers the submissions.
func (b *Batcher) drain() []*submission {
	waiting := b.waiting
	b.waiting, b.bytes, b.operations = nil, 0, 0
	b.work.Signal()
	return waiting
}

func refuse(submissions []*submission, err error) {
	for _, s := range submissions {
		s.answer(raftlog.GroupResult{}, err)
	}
}

// Submit commits an encoded group and returns the state machine's result. It does not
// change the group and may keep it. Its errors are *outcome.Error. If ctx ends while the
// group is queued, the group is removed: NotApplied(Deadline). Once it is in an entry,
// the error is Unknown(Deadline).
func (b *Batcher) Submit(ctx context.Context, group []byte) (raftlog.GroupResult, error) {
	s, err := b.accept(ctx, group)
	if err != nil {
		return raftlog.GroupResult{}, err
	}
	if err := b.enqueue(s); err != nil {
		return raftlog.GroupResult{}, err
	}
	select {
	case <-s.done:
		return s.result, s.err
	case <-ctx.Done():
		return b.leave(s, ctx.Err())
	}
}

// accept refuses groups that must not get into an entry: a damaged group would stop every
// node that applies it.
func (b *Batcher) accept(ctx context.Context, group []byte) (*submission, error) {
	if len(group) > b.cfg.MaxEntryBytes {
		return nil, outcome.NewNotApplied(outcome.TooLarge, nil)
	}
	operations, err := raftlog.CheckGroup(group)
	if err != nil {
		return nil, outcome.NewNotApplied(outcome.Invalid, err)
	}
	return &submission{caller: ctx, group: group, operations: operations, done: make(chan struct{})}, nil
}

func (b *Batcher) enqueue(s *submission) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closing:
		return outcome.NewNotApplied(outcome.Stopping, nil)
	case b.leadership == nil || b.leadership.ctx.Err() != nil:
		return outcome.NewNotApplied(outcome.NotLeader, nil)
	case len(b.waiting) >= b.cfg.QueueGroups, b.bytes+len(s.group) > b.cfg.QueueBytes:
		return outcome.NewNotApplied(outcome.Overloaded, nil)
	}
	b.waiting = append(b.waiting, s)
	b.bytes += len(s.group)
	b.operations += s.operations
	b.work.Signal()
	return nil
}

func (b *Batcher) leave(s *submission, cause error) (raftlog.GroupResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-s.done:
		return s.result, s.err
	default:
	}
	if i := slices.Index(b.waiting, s); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.bytes -= len(s.group)
		b.operations -= s.operations
		b.work.Signal()
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.Deadline, cause)
	}
	return raftlog.GroupResult{}, outcome.NewUnknown(outcome.Deadline, cause)
}

// Close refuses new groups, commits the queued ones, and waits for entries in flight,
// until ctx ends. Then the rest fails: groups in no entry with NotApplied(Stopping), others
// with Unknown(Stopping). It may be called more than once; each call waits.
func (b *Batcher) Close(ctx context.Context) { b.close(ctx, b.stop) }

func (b *Batcher) stop() {
	b.mu.Lock()
	b.stopped = true
	b.linger.stop()
	waiting := b.drain()
	b.mu.Unlock()
	b.haltNow()
	refuse(waiting, outcome.NewNotApplied(outcome.Stopping, nil))
	b.StepDown()
}
