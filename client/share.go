package client

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
)

const (
	// gatherShare bounds how long the next call waits for the callers just answered: the last
	// call's time divided by it, and at most gatherMost. Callers that ask again do so sooner:
	// there is no network in between.
	gatherShare = 4
	gatherMost  = 8 * time.Millisecond
	// mostSkipped bounds the consecutive calls that depart without gathering.
	mostSkipped = 15
	// maxShare bounds the values of one shared call.
	maxShare = 1024
)

// shares lets callers that want one value each of the same identity take a block in one call:
// the cluster then decides, stores and remembers one call for all of them. One call for an
// identity is in flight. A lone caller makes its own call at once, and callers that arrive
// meanwhile wait. After it the next call gathers: it waits, for a bounded time, until as many
// callers wait as were answered and waited already. The callers just answered would otherwise
// miss it, and the callers would alternate in parts. It is safe for concurrent use.
//
// Invariant: a value goes only to a caller that waited when its block was requested. For a
// later caller it might be lower than a value that another caller had taken before.
type shares struct {
	// take takes n values within the context; start runs a goroutine that the Client waits
	// for; newest returns the newest log index seen of a database's cluster.
	take   func(ctx context.Context, key sourceKey, n int, id string) ([]ValueBlock, error)
	start  func(func()) error
	newest func(database string) uint64
	// traceparent returns the span of a caller.
	traceparent func(context.Context) string
	// limit bounds a call from its creation, life all calls.
	limit time.Duration
	life  context.Context

	mu   sync.Mutex
	open map[sourceKey]*share
}

func (c *Client) newShares() *shares {
	return &shares{
		take: func(ctx context.Context, key sourceKey, n int, id string) ([]ValueBlock, error) {
			return c.takeValues(ctx, key.name, n, options{database: key.database, separator: key.separator, requestID: id})
		},
		newest:      func(database string) uint64 { return c.router(database).newest.Load() },
		traceparent: c.cfg.traceparent,
		start:       c.routers[0].start, life: c.routers[0].ctx, // All routers are closed at the same time.
		limit: c.cfg.Timeout, open: make(map[sourceKey]*share),
	}
}

// share is an identity with a call in flight or gathering.
type share struct {
	waiting []*ticket
	// gather bounds the wait for want callers; nil while a call is in flight.
	gather *time.Timer
	want   int
	// vain is 2^n-1 after n consecutive gatherings in which no caller arrived: the callers
	// are busy for longer between two ids. skip is the number of calls that depart without
	// gathering.
	vain, skip int
}

// gathers reports whether the next call waits for more callers, and counts it if it does not
// although callers are missing.
func (h *share) gathers() bool {
	switch {
	case len(h.waiting) >= h.want || h.want == 1:
		return false
	case h.skip > 0:
		h.skip--
		return false
	}
	return true
}

// gathered records whether a caller arrived.
func (h *share) gathered(came bool) {
	if came {
		h.vain, h.skip = 0, 0
		return
	}
	h.skip = h.vain
	h.vain = min(2*h.vain+1, mostSkipped)
}

// ticket is a waiting caller.
type ticket struct {
	made time.Time
	// trace is the caller's span; may be empty.
	trace string
	// block is the ticket's call, nil before; index is the position of its value, from 0.
	// Guarded by shares.mu.
	block *sharedBlock
	index int
	// done is closed when value or err is set, or alone: then the caller makes its own call.
	done  chan struct{}
	value int64
	err   error
	alone bool
}

// sharedBlock is one call for many tickets.
type sharedBlock struct {
	id      string
	since   uint64
	tickets []*ticket
}

// next returns one value. own makes the caller's own call.
func (s *shares) next(ctx context.Context, key sourceKey, own func(context.Context) (int64, error)) (int64, error) {
	t := s.enter(ctx, key)
	if t == nil {
		began := time.Now()
		defer func() { s.leave(key, 1, time.Since(began)) }()
		return own(ctx)
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		if err := s.abandon(ctx, key, t); err != nil {
			return 0, err
		}
	}
	if !t.alone {
		return t.value, t.err
	}
	ctx, cancel := context.WithDeadline(ctx, t.made.Add(s.limit))
	defer cancel()
	return own(ctx)
}

// enter returns the ticket to wait with; nil for a caller that makes its own call now, and
// calls leave afterwards.
func (s *shares) enter(ctx context.Context, key sourceKey) *ticket {
	trace := s.traceparent(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.open[key]
	if h == nil {
		s.open[key] = &share{}
		return nil
	}
	t := &ticket{made: time.Now(), trace: trace, done: make(chan struct{})}
	h.waiting = append(h.waiting, t)
	if h.gather != nil && len(h.waiting) >= h.want {
		h.gathered(true)
		s.depart(key, h)
	}
	return t
}

// leave ends a call for this number of callers, which took this long. It is called before they
// are answered, so that a returning caller is counted once.
func (s *shares) leave(key sourceKey, callers int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.open[key]
	h.want = min(callers+len(h.waiting), maxShare)
	if s.life.Err() != nil || !h.gathers() {
		s.depart(key, h)
		return
	}
	before := len(h.waiting)
	var gather *time.Timer
	gather = time.AfterFunc(min(took/gatherShare, gatherMost), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.gather == gather {
			h.gathered(len(h.waiting) > before)
			s.depart(key, h)
		}
	})
	h.gather = gather
}

// depart begins a call for the waiting callers. The caller holds the lock.
func (s *shares) depart(key sourceKey, h *share) {
	if h.gather != nil {
		h.gather.Stop()
		h.gather = nil
	}
	if len(h.waiting) == 0 {
		delete(s.open, key)
		return
	}
	b := s.board(key, h)
	if err := s.start(func() { s.run(key, b) }); err != nil {
		delete(s.open, key)
		turnAway(b.tickets, err)
		turnAway(h.waiting, err) // No later call takes them.
	}
}

// board makes a call for the oldest tickets.
func (s *shares) board(key sourceKey, h *share) *sharedBlock {
	n := min(len(h.waiting), maxShare)
	b := &sharedBlock{id: newBlockID(n), since: s.newest(key.database), tickets: h.waiting[:n:n]}
	h.waiting = h.waiting[n:]
	for i, t := range b.tickets {
		t.block, t.index = b, i
	}
	return b
}

// abandon returns the error of a caller that stops waiting; nil if the ticket is done by now.
// The caller's value, if there will be one, is a gap unless the caller asks for it again.
func (s *shares) abandon(ctx context.Context, key sourceKey, t *ticket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if closed(t.done) {
		return nil
	}
	last := errorOf(status.FromContextError(ctx.Err()).Err())
	if t.block != nil {
		left := tries{id: &idnodev1.RequestId{Id: t.id()}, since: t.block.since, unknown: true}
		return left.fail(ctx, last)
	}
	h := s.open[key]
	h.waiting = slices.DeleteFunc(h.waiting, func(other *ticket) bool { return other == t })
	return gaveUp(ctx)
}

// run makes the call.
func (s *shares) run(key sourceKey, b *sharedBlock) {
	began := time.Now()
	// The oldest ticket has the least time left.
	ctx, cancel := context.WithDeadline(s.life, b.tickets[0].made.Add(s.limit))
	defer cancel()
	if i := slices.IndexFunc(b.tickets, func(t *ticket) bool { return t.trace != "" }); i >= 0 {
		ctx = context.WithValue(ctx, sharedTrace{}, b.tickets[i].trace)
	}
	blocks, err := s.take(ctx, key, len(b.tickets), b.id)
	s.leave(key, len(b.tickets), time.Since(began))
	if err != nil {
		b.fail(errorOf(err), time.Now().Add(-s.limit))
		return
	}
	b.hand(blocks)
}

// hand gives each ticket its value.
func (b *sharedBlock) hand(blocks []ValueBlock) {
	rest := b.tickets
	for _, v := range blocks {
		for value := v.First; value <= v.Last && len(rest) > 0; value++ {
			rest[0].value = value
			close(rest[0].done)
			rest = rest[1:]
		}
	}
	turnAway(rest, malformed("an answer with too few values"))
}

// fail gives the error to all tickets. It makes them call alone instead if their block is too
// large, or if nothing happened and a ticket still has time, because other tickets had waited
// for longer. A block whose index was too old is not sent again: a caller that left may know
// its request id, and have sent it. A ticket made before expired has no time left.
func (b *sharedBlock) fail(e *Error, expired time.Time) {
	passing := e.effect() == effectNone && e.Reason != reasonOverloaded && e.Reason != reasonClosed
	nothing := !e.OutcomeUnknown && (passing || e.Reason == reasonExpired)
	for _, t := range b.tickets {
		if e.Code == codes.OutOfRange && len(b.tickets) > 1 || nothing && t.made.After(expired) {
			t.alone = true
		} else {
			own := *e
			own.RequestID.ID = t.id()
			t.err = &own
		}
		close(t.done)
	}
}

// turnAway ends tickets with an error without a request id: they have no values to ask for.
func turnAway(tickets []*ticket, err error) {
	for _, t := range tickets {
		t.err = err
		close(t.done)
	}
}

// blockPrefix begins the request id of a block, as in block.HEX.3 for a block of three values.
// The error of one of its callers appends the position of its value, from 1, as in
// block.HEX.3.2, with which the caller can ask for it again. A node refuses ids with this
// prefix in all other calls: no call takes a single value under the id of a block.
const blockPrefix = "block."

// newBlockID returns the request id of a block of this size.
func newBlockID(size int) string { return fmt.Sprintf("%s%s.%d", blockPrefix, randomID(), size) }

// id returns the request id with which the ticket's value can be asked for again.
func (t *ticket) id() string { return fmt.Sprintf("%s.%d", t.block.id, t.index+1) }

// sharedRef identifies one value of a block.
type sharedRef struct {
	// id is the request id of the block, of size values; index is from 0.
	id          string
	index, size int
}

// parseShared parses a request id of ticket.id; false for any other.
func parseShared(requestID string) (sharedRef, bool) {
	parts := strings.Split(requestID, ".")
	if !strings.HasPrefix(requestID, blockPrefix) || len(parts) != 4 {
		return sharedRef{}, false
	}
	size, errSize := strconv.Atoi(parts[2])
	place, errPlace := strconv.Atoi(parts[3])
	ref := sharedRef{id: strings.Join(parts[:3], "."), index: place - 1, size: size}
	return ref, errSize == nil && errPlace == nil && 1 <= place && place <= size && size <= maxShare
}

// valueAt returns the value at a position in blocks; false if they have fewer.
func valueAt(blocks []ValueBlock, index int) (int64, bool) {
	for _, b := range blocks {
		if n := b.Last - b.First + 1; int64(index) >= n {
			index -= int(n)
			continue
		}
		return b.First + int64(index), true
	}
	return 0, false
}
