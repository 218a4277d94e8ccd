package generator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/hilo"
)

// MaxCount is the greatest number of ids that one call can ask for.
const MaxCount = hilo.MaxSize

// DefaultTimeout bounds a call of the source if the Config names no other limit. A
// cluster rides out an election of a few seconds, and this is longer.
const DefaultTimeout = 10 * time.Second

// Config is what can be chosen about a generator. The zero Config is a good one.
type Config struct {
	// FirstSize is the size of the first range (1 … hilo.MaxSize); 0 leaves it to the
	// cluster. All others follow use.
	FirstSize int64
	// Timeout bounds each call of the source; 0 means DefaultTimeout. It is not taken
	// from callers' contexts, since many callers share one range.
	Timeout time.Duration
}

// Generator hands out the numbers of one tag. All methods may be called
// concurrently.
//
// Invariant: a caller in the queue found current empty and no range ahead, so a fetcher
// runs, and its range goes to the queue first.
type Generator struct {
	// current is the range that numbers are taken from, never nil. It is read by every
	// call, and lies apart from what the slow path writes.
	current atomic.Pointer[heldRange]
	_       [line - 8]byte

	source  RangeSource
	timeout time.Duration
	life    context.Context // ends when a Close that gave up, or is done, cancels it
	cancel  context.CancelFunc
	closing chan struct{} // closed as soon as Close begins
	gone    chan struct{} // closed when Close is done; closeErr is then set
	// next is the request for the next range. It belongs to the fetcher at work.
	next     Request
	closeErr error

	mu      sync.Mutex // held for moments only, never during a call of the source
	closed  bool
	ahead   *heldRange // the range after current, nil while there is none
	fetcher *fetcher   // at work or resting; nil while no range is wanted
	queue   queue
}

// New returns a generator. It does not fetch a range yet: the first caller does. The
// error names the invalid value of the Config; it is hilo.ErrSize for the size.
//
// The generator needs a Close, to return its numbers.
func New(source RangeSource, cfg Config) (*Generator, error) {
	switch {
	case source == nil:
		return nil, errors.New("generator: there is no source")
	case cfg.FirstSize < 0 || cfg.FirstSize > hilo.MaxSize:
		return nil, hilo.ErrSize
	case cfg.Timeout < 0:
		return nil, errors.New("generator: the timeout is negative")
	case cfg.Timeout == 0:
		cfg.Timeout = DefaultTimeout
	}
	g := &Generator{
		source:  source,
		timeout: cfg.Timeout,
		closing: make(chan struct{}),
		gone:    make(chan struct{}),
		next:    Request{Size: cfg.FirstSize},
	}
	g.life, g.cancel = context.WithCancel(context.Background())
	g.current.Store(&heldRange{})
	return g, nil
}

// Next takes a number. It waits only if none is left of the ranges at hand, at most
// until ctx ends; a number that is at hand is given without looking at ctx.
//
// The error is ctx's, ErrClosed, or the source's error of the attempt that the call
// waited for; the next call then tries again. A call with an error got no number.
func (g *Generator) Next(ctx context.Context) (Number, error) {
	s := g.current.Load()
	i := s.used.Add(1)
	if i > s.size {
		b, err := g.wait(ctx, 1)
		return Number{b.first, b.of}, err
	}
	if i == s.half {
		g.prefetch(s)
	}
	return Number{s.Low + int64(i) - 1, s}, nil
}

// NextID takes a number and returns its id: "users/65-A". It is Next otherwise.
func (g *Generator) NextID(ctx context.Context) (string, error) {
	n, err := g.Next(ctx)
	return n.String(), err
}

// NextIDs takes n numbers (1 … MaxCount) and returns their ids, in rising order.
// They need not be consecutive, nor have the same prefix and node tag, since more
// than one range may be needed.
//
// The errors are those of Next, and ErrCount. With an error it returns the ids that the
// call had got before: they are the caller's alone.
func (g *Generator) NextIDs(ctx context.Context, n int) ([]string, error) {
	if n < 1 || n > MaxCount {
		return nil, ErrCount
	}
	ids := make([]string, 0, n)
	for len(ids) < n {
		b, err := g.take(ctx, uint64(n-len(ids)))
		if err != nil {
			return ids, err
		}
		ids = b.appendIDs(ids)
	}
	return ids, nil
}

// take takes 1 to n numbers, and waits for them if need be.
func (g *Generator) take(ctx context.Context, n uint64) (block, error) {
	s := g.current.Load()
	b, half := s.take(n)
	if b.n == 0 {
		return g.wait(ctx, n)
	}
	if half {
		g.prefetch(s)
	}
	return b, nil
}
