package client

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookAfter is the age of the newest look after which another is started in the
	// background: it finds a leadership that was transferred without a failure.
	lookAfter = 5 * time.Second
	// lookSoon is that age while no leader is known.
	lookSoon = time.Second
	// lookAgain is the least time between two looks, however many tries fail.
	lookAgain = 200 * time.Millisecond
	// lookTimeout bounds one GetStatus call of a look. The call needs no quorum, so only a
	// node that is cut off takes longer.
	lookTimeout = time.Second
	// distrust is how long a node that failed is used only if there is no other.
	distrust = 2 * time.Second
)

// router has the nodes of a cluster, and its leader. It is safe for concurrent use.
type router struct {
	cfg Config
	// secured makes connections with TLS; nil without.
	secured *secured
	// given are the endpoints of the configuration, or of SetEndpoints; mu guards them.
	given []*node
	// ctx ends the goroutines; tasks waits for them.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	// newest is the newest log index seen in any answer; newestAt is when a node last reported
	// it as applied, in nanoseconds since epoch.
	newest   atomic.Uint64
	newestAt atomic.Int64
	// belongs is nil until an endpoint has answered.
	belongs atomic.Pointer[belonging]
	// outage is what Config.FailFastAfter goes by.
	outage outage

	mu sync.Mutex
	// heard are the clusters that endpoints have answered last, by address.
	heard map[string]string
	// learned are the nodes at addresses from the cluster.
	learned map[string]*node
	// leader is nil if it is unknown, or unreachable from here.
	leader *node
	// lastLeader is the newest leader that was known.
	lastLeader *node
	// home is the index in given of the node for calls that need no leader.
	home       int
	newestLook *look
	closed     bool
}

func newRouter(cfg Config, secured *secured) (*router, error) {
	over := make(chan struct{})
	close(over)
	r := &router{
		cfg: cfg, secured: secured, learned: make(map[string]*node), heard: make(map[string]string),
		newestLook: &look{heard: over, done: over},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if cfg.ClusterID != "" {
		r.belongs.Store(&belonging{id: cfg.ClusterID, sure: true})
	}
	for _, e := range cfg.Endpoints {
		n, err := r.newNode(e)
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
	for _, n := range slices.AppendSeq(r.given, maps.Values(r.learned)) {
		_ = n.conn.Close()
	}
}

// start runs a goroutine that close waits for.
func (r *router) start(f func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return closedError("the client is closed")
	}
	r.tasks.Go(f)
	return nil
}

// saw records the log index of an answer.
func (r *router) saw(index uint64) {
	for have := r.newest.Load(); index > have; have = r.newest.Load() {
		if r.newest.CompareAndSwap(have, index) {
			r.newestAt.Store(int64(time.Since(epoch)))
			return
		}
	}
}

// sawApplied is saw for an index that a node has applied now. The index of another answer may
// be that of an earlier call, so only a higher index is news.
func (r *router) sawApplied(index uint64) {
	r.saw(index)
	if index == r.newest.Load() {
		r.newestAt.Store(int64(time.Since(epoch)))
	}
}

// fresh reports whether newest is recent enough for a retry to name it: a cluster refuses a
// retry that names an index from before its window of request ids, which a busy cluster may
// fill in seconds.
func (r *router) fresh() bool {
	return r.newest.Load() != 0 && time.Since(epoch)-time.Duration(r.newestAt.Load()) < lookAfter
}

// route returns the node for the next try of a call. last is the node of the previous try, nil
// before the first. A try never goes to the node of the previous try if there is another.
func (r *router) route(toLeader bool, last *node) (*node, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, closedError("the client is closed")
	}
	switch {
	case toLeader && r.leader != nil:
		r.lookLocked(lookAfter, nil)
	case toLeader:
		r.lookLocked(lookSoon, nil)
	}
	if toLeader && r.leader != nil && r.leader != last && !r.leader.suspected() {
		return r.leader, nil
	}
	return r.next(last), nil
}

// next returns home, or after a failure the endpoint after the failed one. A suspected
// endpoint is returned only if there is no other, and no other node that has told its cluster.
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
	for _, n := range r.learned {
		if n != last && n.told.Load() && !n.suspected() {
			return n
		}
	}
	return r.given[from%len(r.given)]
}

// failed records a node that could not serve a call: later calls begin at another node, and
// the client looks for the leader again.
func (r *router) failed(n *node) {
	n.suspect()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leader == n {
		r.leader = nil
	}
	if r.given[r.home] == n {
		r.home = (r.home + 1) % len(r.given)
	}
	r.lookLocked(lookAgain, nil)
}

// latest waits until the leader, or every node, has reported its log index, and returns the
// newest: the first to answer may be a follower that is cut off. A look that has just ended is
// too old: its index may have been forgotten since.
func (r *router) latest(ctx context.Context, end time.Time) uint64 {
	await(ctx, end, r.look(0, nil).done)
	return r.newest.Load()
}

// await waits for a part of a look, until end and for lookTimeout at most.
func await(ctx context.Context, end time.Time, over <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, min(lookTimeout, time.Until(end)))
	defer cancel()
	select {
	case <-over:
	case <-ctx.Done():
	}
}
