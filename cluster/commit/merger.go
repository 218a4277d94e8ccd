package commit

import (
	"context"
	"slices"
	"sync"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// Merger is the leader's side: it takes the groups of all nodes, undecoded, and
// merges those that wait into one log entry. There is one per node; it refuses
// everything while the node does not lead. It is safe for concurrent use.
type Merger struct {
	cfg MergerConfig

	mu sync.Mutex
	// work wakes the writers that wait for something to do.
	work    sync.Cond
	waiting []*submission
	// bytes and operations are those of the groups that wait.
	bytes      int
	operations int
	linger     linger
	// leadership is the present one; nil if the node does not lead.
	leadership *leadership
	closing    bool
	stopped    bool

	// halt ends with the Merger.
	halt     context.Context
	haltNow  context.CancelFunc
	finished chan struct{}
}

// submission is one group and whoever waits for it. The Merger's lock guards
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

// leadership is one, from Lead to Resign or the end of its context.
type leadership struct {
	ctx context.Context
	end context.CancelFunc
}

// NewMerger starts a Merger; Close ends it. It leads from Lead on.
func NewMerger(cfg MergerConfig) (*Merger, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Merger{cfg: cfg, finished: make(chan struct{})}
	m.work.L = &m.mu
	m.halt, m.haltNow = context.WithCancel(context.Background())
	var writing sync.WaitGroup
	for range cfg.InFlight {
		writing.Go(m.write)
	}
	go func() {
		writing.Wait()
		close(m.finished)
	}()
	return m, nil
}

// Lead says that this node leads until ctx ends, or Resign is called. It may
// begin before the new leader has applied the entries of its predecessors: what
// is proposed now is applied after them.
func (m *Merger) Lead(ctx context.Context) {
	r := &leadership{}
	r.ctx, r.end = context.WithCancel(ctx)
	m.succeed(r)
	context.AfterFunc(r.ctx, func() { m.endLeadership(r) })
}

// succeed puts r in the place of the leadership before it, whose end is the same as
// with Resign. A Merger that has stopped does not lead any more.
func (m *Merger) succeed(r *leadership) {
	m.mu.Lock()
	before, waiting := m.leadership, []*submission(nil)
	if before != nil {
		waiting = m.drain()
	}
	m.leadership = r
	if m.stopped {
		m.leadership, before = nil, r
	}
	m.mu.Unlock()
	if before != nil {
		before.end()
	}
	refuse(waiting, outcome.NewNotApplied(outcome.NotLeader, nil))
}

// Resign says that this node does not lead any more. When it returns, groups
// that wait have been refused as NotApplied(NotLeader); those in an entry get
// Unknown(LeadershipLost) unless the log says more within Grace.
func (m *Merger) Resign() {
	m.mu.Lock()
	r := m.leadership
	m.mu.Unlock()
	if r != nil {
		m.endLeadership(r)
	}
}

// endLeadership ends a leadership, unless it has ended before.
func (m *Merger) endLeadership(r *leadership) {
	r.end()
	m.mu.Lock()
	if m.leadership != r {
		m.mu.Unlock()
		return
	}
	m.leadership = nil
	waiting := m.drain()
	m.mu.Unlock()
	refuse(waiting, outcome.NewNotApplied(outcome.NotLeader, nil))
}

// drain empties the queue. The caller holds the lock and answers what it gets.
func (m *Merger) drain() []*submission {
	waiting := m.waiting
	m.waiting, m.bytes, m.operations = nil, 0, 0
	m.work.Broadcast()
	return waiting
}

func refuse(submissions []*submission, err error) {
	for _, s := range submissions {
		s.answer(raftlog.GroupResult{}, err)
	}
}

// Submit brings an encoded group into the log and returns what the state
// machine said. It does not change the group and may keep it. Its errors are
// *outcome.Error. If ctx ends while the group waits for an entry, it is taken
// back: NotApplied(Deadline). Once it is in an entry it stays there:
// Unknown(Deadline).
func (m *Merger) Submit(ctx context.Context, group []byte) (raftlog.GroupResult, error) {
	s, err := m.accept(ctx, group)
	if err != nil {
		return raftlog.GroupResult{}, err
	}
	if err := m.enqueue(s); err != nil {
		return raftlog.GroupResult{}, err
	}
	select {
	case <-s.done:
		return s.result, s.err
	case <-ctx.Done():
		return m.leave(s, ctx.Err())
	}
}

// accept refuses what must not get into an entry: a damaged group would stop
// every node that reads it.
func (m *Merger) accept(ctx context.Context, group []byte) (*submission, error) {
	if len(group) > m.cfg.MaxEntryBytes {
		return nil, outcome.NewNotApplied(outcome.TooLarge, nil)
	}
	operations, err := raftlog.CheckGroup(group)
	if err != nil {
		return nil, outcome.NewNotApplied(outcome.Invalid, err)
	}
	return &submission{caller: ctx, group: group, operations: operations, done: make(chan struct{})}, nil
}

// enqueue lets s wait for an entry, or says why not.
func (m *Merger) enqueue(s *submission) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closing:
		return outcome.NewNotApplied(outcome.Stopping, nil)
	case m.leadership == nil || m.leadership.ctx.Err() != nil:
		return outcome.NewNotApplied(outcome.NotLeader, nil)
	case len(m.waiting) >= m.cfg.QueueGroups, m.bytes+len(s.group) > m.cfg.QueueBytes:
		return outcome.NewNotApplied(outcome.Overloaded, nil)
	}
	m.waiting = append(m.waiting, s)
	m.bytes += len(s.group)
	m.operations += s.operations
	m.work.Signal()
	return nil
}

// leave takes s back because its submitter goes away.
func (m *Merger) leave(s *submission, cause error) (raftlog.GroupResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-s.done:
		return s.result, s.err
	default:
	}
	if i := slices.Index(m.waiting, s); i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
		m.bytes -= len(s.group)
		m.operations -= s.operations
		m.work.Broadcast()
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.Deadline, cause)
	}
	return raftlog.GroupResult{}, outcome.NewUnknown(outcome.Deadline, cause)
}

// Close refuses new groups, brings those that wait into the log, and waits for
// what is under way, until ctx ends. What is left then is answered:
// NotApplied(Stopping) if it is in no entry, Unknown(Stopping) otherwise. It
// may be called more than once; each call waits.
func (m *Merger) Close(ctx context.Context) {
	m.mu.Lock()
	m.closing = true
	m.work.Broadcast()
	m.mu.Unlock()
	select {
	case <-m.finished:
	case <-ctx.Done():
	}
	m.stop()
	<-m.finished
}

// stop ends the wait of everybody at once.
func (m *Merger) stop() {
	m.mu.Lock()
	m.stopped = true
	m.linger.stop()
	waiting := m.drain()
	m.mu.Unlock()
	m.haltNow()
	refuse(waiting, outcome.NewNotApplied(outcome.Stopping, nil))
	m.Resign()
}
