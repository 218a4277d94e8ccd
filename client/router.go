package client

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookAfter is how old what is known of the leader may get before it is
	// looked at again, beside the calls: a leadership that was transferred without a
	// failure is found this way.
	lookAfter = 5 * time.Second
	// lookSoon is that while no leader is known.
	lookSoon = time.Second
	// lookAgain is the least time between two looks, however much fails.
	lookAgain = 200 * time.Millisecond
	// lookTimeout bounds one question to one node. It needs no quorum, so only
	// a node that is cut off takes longer.
	lookTimeout = time.Second
	// distrust is how long a node that failed is asked only if no other is left.
	distrust = 2 * time.Second
)

// router knows the nodes, and which of them leads. Safe for concurrent use.
type router struct {
	cfg Config
	// given are the endpoints of the configuration.
	given []*node
	// ctx ends the goroutines; tasks waits for them.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	// newest is the newest log index seen in any answer; newestAt is when, in
	// nanoseconds since epoch, a node last said that it had come so far.
	newest   atomic.Uint64
	newestAt atomic.Int64
	// clusterID is the cluster that all nodes must be of; nil until one has said it.
	clusterID atomic.Pointer[string]

	mu sync.Mutex
	// learned are nodes at addresses that the cluster told.
	learned map[string]*node
	// leader is nil if it is not known, or cannot be reached from here.
	leader *node
	// home is the index in given of the node for calls that need no leader.
	home       int
	newestLook *look
	closed     bool
}

func newRouter(cfg Config) (*router, error) {
	over := make(chan struct{})
	close(over)
	r := &router{cfg: cfg, learned: make(map[string]*node), newestLook: &look{heard: over, done: over}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if cfg.ClusterID != "" {
		r.clusterID.Store(&cfg.ClusterID)
	}
	for _, e := range cfg.Endpoints {
		n, err := newNode(r.ctx, cfg, e, r.start)
		if err != nil {
			r.close()
			return nil, err
		}
		r.given = append(r.given, n)
	}
	return r, nil
}

func (r *router) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.tasks.Wait()
	for _, n := range r.given {
		n.close()
	}
	for _, n := range r.learned {
		n.close()
	}
}

// start runs a goroutine that close waits for.
func (r *router) start(f func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return closedError()
	}
	r.tasks.Go(f)
	return nil
}

// saw notes a log index that an answer carried.
func (r *router) saw(index uint64) {
	for {
		have := r.newest.Load()
		if index <= have {
			return
		}
		if r.newest.CompareAndSwap(have, index) {
			r.newestAt.Store(int64(time.Since(epoch)))
			return
		}
	}
}

// sawApplied is saw for what a node has applied now. The index of another answer
// may be that of an earlier call, so only a higher one says something new.
func (r *router) sawApplied(index uint64) {
	r.saw(index)
	if index == r.newest.Load() {
		r.newestAt.Store(int64(time.Since(epoch)))
	}
}

// fresh says whether newest is so new that a retry may name it: a cluster refuses a
// retry that names an index from before its window of request ids, and a busy one
// may write as many in some seconds.
func (r *router) fresh() bool {
	return r.newest.Load() != 0 && time.Since(epoch)-time.Duration(r.newestAt.Load()) < lookAfter
}

// route returns the node for the next try of a call. last is the node of the
// try before, nil for the first. A try never goes to the same node as the one
// before it if there is another.
func (r *router) route(toLeader bool, last *node) (*node, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, closedError()
	}
	switch {
	case toLeader && r.leader != nil:
		r.look(lookAfter)
	case toLeader:
		r.look(lookSoon)
	}
	if toLeader && r.leader != nil && r.leader != last && !r.leader.suspected() {
		return r.leader, nil
	}
	return r.next(last), nil
}

// next returns home, or after a failure the endpoint after the one that failed;
// ones under suspicion only if there is no other.
func (r *router) next(last *node) *node {
	from := r.home
	if i := slices.Index(r.given, last); i >= 0 {
		from = i + 1
	}
	for i := range r.given {
		n := r.given[(from+i)%len(r.given)]
		if n != last && !n.suspected() {
			return n
		}
	}
	return r.given[from%len(r.given)]
}

// failed records a node that could not serve a call: later calls begin at
// another node, and the client looks for the leader again.
func (r *router) failed(n *node) {
	n.suspect(distrust)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leader == n {
		r.leader = nil
	}
	if r.given[r.home] == n {
		r.home = (r.home + 1) % len(r.given)
	}
	r.look(lookAgain)
}

// doubt has the leader looked for again, without blaming a node.
func (r *router) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look(lookAgain)
}

// known waits until the first look is over, so that the first calls already go
// to the leader and know a log index.
func (r *router) known(ctx context.Context) {
	if r.newest.Load() == 0 {
		r.awaitLook(ctx, lookAgain, func(l *look) <-chan struct{} { return l.done })
	}
}

// refresh waits until a node has said how far it is, so that the retries of the call
// that follows name a log index that is not old.
func (r *router) refresh(ctx context.Context) {
	r.awaitLook(ctx, lookAgain, func(l *look) <-chan struct{} { return l.heard })
}

// latest waits until the leader, or every node, has said how far it is, and returns
// the newest log index: the first to answer may be a follower that is cut off. A look
// that ended a moment ago is too old: what it found was forgotten since.
func (r *router) latest(ctx context.Context) uint64 {
	r.awaitLook(ctx, 0, func(l *look) <-chan struct{} { return l.done })
	return r.newest.Load()
}

// awaitLook waits for a look, which it starts if the last one began before age, bounded
// by lookTimeout.
func (r *router) awaitLook(ctx context.Context, age time.Duration, until func(*look) <-chan struct{}) {
	r.mu.Lock()
	l := r.look(age)
	r.mu.Unlock()
	bound, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	select {
	case <-until(l):
	case <-bound.Done():
	}
}
