package commit

import (
	"context"
	"slices"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// Batcher is the leader's side: it takes the groups of all nodes, undecoded, and
// joins those that wait into one log entry. There is one per node; it refuses
// everything while the node does not lead. It is safe for concurrent use.
type Batcher struct {
	cfg BatcherConfig

	loops
	waiting []*submission
	// bytes and operations are those of the groups that wait.
	bytes      int
	operations int
	// leadership is the present one; nil if the node does not lead.
	leadership *leadership
}

// submission is one group and its submitter.
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

// leadership lasts from Lead to StepDown, or to the end of its context.
type leadership struct {
	ctx context.Context
	end context.CancelFunc
	// held means that nothing is written yet: see Hold.
	held bool
}

// NewBatcher starts a Batcher; Close ends it. It leads from Lead on.
func NewBatcher(cfg BatcherConfig) (*Batcher, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Batcher{cfg: cfg}
	b.init()
	b.start(slices.Repeat([]func(){b.write}, cfg.InFlight)...)
	return b, nil
}

// Lead says that this node leads until ctx ends, or StepDown is called. It may
// begin before the new leader has applied the entries of earlier leaders: what
// is proposed now is applied after them.
func (b *Batcher) Lead(ctx context.Context) {
	r := &leadership{}
	r.ctx, r.end = context.WithCancel(ctx)
	b.begin(r)
}

// Hold says that this node leads, and will call Lead soon: groups are taken, and wait for
// that instead of being refused and sent again. After HoldLimit they are refused, and
// others at once.
func (b *Batcher) Hold(ctx context.Context) {
	r := &leadership{held: true}
	r.ctx, r.end = context.WithTimeout(ctx, HoldLimit)
	b.begin(r)
}

// begin begins a leadership.
func (b *Batcher) begin(r *leadership) {
	b.replace(r)
	context.AfterFunc(r.ctx, func() { b.endLeadership(r) })
}

// replace replaces the previous leadership, which ends as with StepDown; groups that were
// held wait for the new one. A Batcher that has stopped no longer leads.
func (b *Batcher) replace(r *leadership) {
	b.mu.Lock()
	before, waiting := b.leadership, []*submission(nil)
	if before != nil && (!before.held || b.stopped) {
		waiting = b.drain()
	}
	b.leadership = r
	b.work.Broadcast()
	if b.stopped {
		b.leadership, before = nil, r
	}
	b.mu.Unlock()
	if before != nil {
		before.end()
	}
	refuse(waiting, outcome.NewNotApplied(outcome.NotLeader, nil))
}

// StepDown says that this node no longer leads. When it returns, groups that wait have been
// refused as NotApplied(NotLeader); those in an entry get Unknown(LeadershipLost) unless
// the log reports more within Grace.
func (b *Batcher) StepDown() {
	b.mu.Lock()
	r := b.leadership
	b.mu.Unlock()
	if r != nil {
		b.endLeadership(r)
	}
}

// endLeadership ends a leadership once.
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
	b.work.Broadcast()
	return waiting
}

func refuse(submissions []*submission, err error) {
	for _, s := range submissions {
		s.answer(raftlog.GroupResult{}, err)
	}
}

// Submit commits an encoded group and returns the state machine's result. It does not
// change the group and may keep it. Its errors are *outcome.Error. If ctx ends while the
// group waits for an entry, it is taken back: NotApplied(Deadline). Once it is in an
// entry it stays there: Unknown(Deadline).
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

// accept refuses groups that must not get into an entry: a damaged one would stop every
// node that reads it.
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

// enqueue queues s for an entry, or returns why not.
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

// leave removes s because its submitter gives up.
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
		b.work.Broadcast()
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.Deadline, cause)
	}
	return raftlog.GroupResult{}, outcome.NewUnknown(outcome.Deadline, cause)
}

// Close refuses new groups, commits those that wait, and waits for entries in flight,
// until ctx ends. Then the rest is answered: NotApplied(Stopping) if it is in no entry,
// Unknown(Stopping) otherwise. It may be called more than once; each call waits.
func (b *Batcher) Close(ctx context.Context) { b.close(ctx, b.stop) }

// stop ends all waits at once.
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
