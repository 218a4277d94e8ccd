// Package reserve keeps HiLo numbers that the cluster granted to this node in advance, so
// that the node has ranges for its callers while it cannot reach the cluster.
//
// A grant is an ordinary range of which the node is the holder: its numbers count as issued
// from then on, and the cluster never gives them to another client. They are kept in memory
// only. So a process that ends, in whatever way, leaves at worst a gap, and no disk that was
// set back or copied can give a number twice.
package reserve

import (
	"container/list"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/hilo"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// MaxNumbers bounds the numbers kept of one tag.
	MaxNumbers = hilo.MaxSize
	// MaxTags bounds the known tags; beyond it the least recently used tag is dropped.
	MaxTags = 10_000
	// MaxAge is how long numbers are given without a quorum: roles and limits are as old by
	// then.
	MaxAge = 24 * time.Hour
	// idleFor is the time without use after which a tag's numbers are returned.
	idleFor = 24 * time.Hour
	// steadyFor is how long a tag must have been in use at this node, unless a tenth of
	// Config.For is less. A rarely used tag has no numbers in reserve, and so no gaps.
	steadyFor = time.Minute
	// minPause and maxPause bound the pause between two checks for missing numbers.
	minPause, maxPause = 50 * time.Millisecond, time.Second
	// maxConcurrent is the number of operations proposed at once: group commit makes few
	// entries of them.
	maxConcurrent = 64
	// proposeTimeout bounds one proposal, stopTimeout all proposals of a stop.
	proposeTimeout, stopTimeout = 5 * time.Second, 2 * time.Second
)

// Cluster is this node's local knowledge of the cluster.
type Cluster interface {
	op.Proposer
	// QuorumMissing returns how long no quorum has been in reach; 0 if one is.
	QuorumMissing() time.Duration
	// ClusterCheck returns why the node serves no callers yet, or nil.
	ClusterCheck() error
	// Members returns all members, including removed ones.
	Members() []*raftlogv1.Member
}

// Config is the configuration and dependencies of a Keeper.
type Config struct {
	// Held is empty, and belongs to the Keeper from now on.
	Held    *Held
	Cluster Cluster
	// For is the least time that the numbers should last, at the previous rate: more than 0,
	// at most 24 h.
	For time.Duration
	// Tag returns the node's tag, and whether the cluster has confirmed it.
	Tag    func() (tag string, confirmed bool)
	Logger *slog.Logger
}

// Keeper keeps the numbers. It is safe for concurrent use.
//
// Invariant: a number is given at most once, and never after it was returned or discarded.
type Keeper struct {
	*Held
	cfg Config
	// cancel ends the loop; done is closed when it has ended.
	cancel context.CancelFunc
	done   chan struct{}
}

// Held is the numbers in reserve. The state, which discards some, is made with it, and before the Keeper,
// which needs the cluster.
type Held struct {
	mu sync.Mutex
	// tags has the elements of recent by tag. Their values are *tagState, most recently used
	// first.
	tags   map[key]*list.Element
	recent *list.List
	// discards counts the calls of Discard for all tags: a grant that was in flight during
	// such a call is given up.
	discards uint64
	stopped  bool
}

// NewHeld returns an empty reserve. Without a Keeper it stays empty.
func NewHeld() *Held { return &Held{tags: map[key]*list.Element{}, recent: list.New()} }

// NewKeeper returns a keeper whose loop is running. The owner must call Stop.
func NewKeeper(cfg Config) *Keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &Keeper{Held: cfg.Held, cfg: cfg, cancel: cancel, done: make(chan struct{})}
	go k.run(ctx)
	return k
}

// Took counts a range of a tag that this node gave to a caller. principal is the principal of
// the caller's operation, on whose behalf the node asks for more.
func (k *Keeper) Took(database, tag string, principal *string, r hilo.Range) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.used(key{database, tag}, now)
	h.principal, h.refused = principal, false
	h.greatest = max(h.greatest, r.High)
	h.count(now, k.cfg.For, r.Size())
}

// used returns the state of a tag that is used now. The caller holds mu.
func (k *Keeper) used(t key, now time.Time) *tagState {
	if e := k.tags[t]; e != nil {
		k.recent.MoveToFront(e)
		return e.Value.(*tagState)
	}
	if len(k.tags) >= MaxTags {
		oldest := k.recent.Back()
		delete(k.tags, k.recent.Remove(oldest).(*tagState).key)
	}
	h := &tagState{key: t, first: now, last: now, begin: now}
	k.tags[t] = k.recent.PushFront(h)
	return h
}

// Holds reports whether there is a number of a tag to take, and the greatest number of the
// tag that Took was called with.
func (k *Keeper) Holds(database, tag string) (greatest int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.tags[key{database, tag}]
	if e == nil {
		return 0, false
	}
	h := e.Value.(*tagState)
	return h.greatest, len(h.pieces) > 0 && !k.stopped
}

// CutOff reports whether no quorum is in reach now, and whether that has lasted longer than
// MaxAge.
func (k *Keeper) CutOff() (now, tooLong bool) {
	missing := k.cfg.Cluster.QuorumMissing()
	return missing > 0, missing > MaxAge
}

// Take gives up to size consecutive numbers of a tag, which no other caller ever gets. It
// returns false if there are none, or if none may be given any more.
func (k *Keeper) Take(database, tag string, size int64) (hilo.Range, bool) {
	if _, tooLong := k.CutOff(); tooLong || k.cfg.Cluster.ClusterCheck() != nil || size < 1 {
		return hilo.Range{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.tags[key{database, tag}]
	if e == nil || k.stopped || len(e.Value.(*tagState).pieces) == 0 {
		return hilo.Range{}, false
	}
	return e.Value.(*tagState).take(size), true
}

// Discard gives up the numbers of a tag up to upTo, because they were taken otherwise; an
// empty tag means all tags. The greatest integer discards all present numbers. It does not
// block: the state calls it.
func (h *Held) Discard(database, tag string, upTo int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if upTo == math.MaxInt64 {
		h.discards++ // Grants whose answers are still on their way are of what was forgotten, too.
	}
	if tag != "" {
		if e := h.tags[key{database, tag}]; e != nil {
			e.Value.(*tagState).discard(upTo)
		}
		return
	}
	for _, e := range h.tags {
		e.Value.(*tagState).discard(upTo)
	}
}

// Stop ends the keeper and returns the unused numbers, within 2 s and ctx. It must be called
// while the node can still propose. Numbers that cannot be returned are a gap, and nothing
// worse. It may be called again, and on the nil Keeper.
func (k *Keeper) Stop(ctx context.Context) {
	if k == nil {
		return
	}
	k.cancel()
	k.mu.Lock()
	k.stopped = true
	var rests []rest
	for _, e := range k.tags {
		if r, ok := e.Value.(*tagState).takeRest(); ok {
			rests = append(rests, r)
		}
	}
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	select {
	case <-k.done:
	case <-ctx.Done():
	}
	k.giveBack(ctx, rests)
}

func (k *Keeper) run(ctx context.Context) {
	defer close(k.done)
	tick := time.NewTicker(min(max(k.cfg.For/100, minPause), maxPause))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if k.cfg.Cluster.QuorumMissing() > 0 || k.cfg.Cluster.ClusterCheck() != nil {
			continue
		}
		k.giveBack(ctx, k.takeIdle())
		if k.hasOthers() {
			k.refill(ctx)
		}
	}
}

// hasOthers reports whether there are other members: a node is not cut off from itself.
func (k *Keeper) hasOthers() bool {
	present := 0
	for _, m := range k.cfg.Cluster.Members() {
		if !m.GetRemoved() {
			present++
		}
	}
	return present > 1
}

type grant struct {
	*tagState
	principal *string
	size      int64
	discards  uint64
}

// missing returns the grants to request: for each tag that has less than its need, as many
// numbers as make its reserve twice the need.
func (k *Keeper) missing() (grants []grant) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for e := k.recent.Front(); e != nil; e = e.Next() {
		h := e.Value.(*tagState)
		need, left := h.need(now, k.cfg.For), h.left()
		if need == 0 || left >= need || h.refused {
			continue
		}
		grants = append(grants, grant{h, h.principal, max(2*need-left, hilo.MinSize), k.discards})
	}
	return grants
}

// refill requests the missing grants. After a failure of the log it waits for the next check.
func (k *Keeper) refill(ctx context.Context) {
	grants := k.missing()
	for len(grants) > 0 && ctx.Err() == nil {
		n := min(len(grants), maxConcurrent)
		if k.askAll(ctx, grants[:n]) != nil {
			return
		}
		grants = grants[n:]
	}
}

func (k *Keeper) askAll(ctx context.Context, grants []grant) error {
	errs := make([]error, len(grants))
	var wg sync.WaitGroup
	for i, g := range grants {
		wg.Go(func() { errs[i] = k.ask(ctx, g) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ask requests one grant. A refusal is no failure: the tag gets no grant until a caller gets
// a range of the tag again.
func (k *Keeper) ask(ctx context.Context, g grant) error {
	token := NewToken()
	wanted := &raftlogv1.HiLoNext{Tag: g.tag, Size: g.size, Token: token, Reserve: true}
	wanted.ServerTag, _ = k.cfg.Tag()
	result, err := k.propose(ctx, g.key, g.principal, wanted)
	refused := op.RefusalOf(err)
	if err != nil && refused == nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if refused != nil {
		g.refused = true
		k.cfg.Logger.Debug("the cluster grants no numbers in reserve", "database", g.database, "tag", g.tag, "reason", refused.GetReason())
		return nil
	}
	next := result.GetHiloNext()
	r := hilo.Range{Low: next.GetLow(), High: next.GetHigh()}
	// The tag may have been forgotten meanwhile, and the numbers taken otherwise.
	e := k.tags[g.key]
	known := e != nil && e.Value == g.tagState
	if known && !k.stopped && k.discards == g.discards && r.High > g.discarded {
		g.pieces = append(g.pieces, piece{Range: r, next: max(r.Low, g.discarded+1), token: token})
	}
	return nil
}

// propose commits an operation on a tag. The error of a refusal is an *op.RefusedError.
func (k *Keeper) propose(ctx context.Context, t key, principal *string, payload proto.Message) (*raftlogv1.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, proposeTimeout)
	defer cancel()
	return op.Envelope{Database: t.database, Principal: principal}.Propose(ctx, k.cfg.Cluster, payload)
}

// NewToken returns the token of a range: 8 random bytes as a number.
func NewToken() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails.
	return binary.BigEndian.Uint64(b[:])
}
