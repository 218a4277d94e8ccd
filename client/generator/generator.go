package generator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// MaxCount is the greatest number of ids of one call, and the greatest size of a range that can
// be asked for: hilo.MaxSize of the servers.
const MaxCount = 1 << 20

// DefaultTimeout bounds a call of the source unless Config.Timeout is set. It is longer than
// an election.
const DefaultTimeout = 10 * time.Second

// Config configures a generator. The zero Config is valid.
type Config struct {
	// FirstSize is the size of the first range (1 … MaxCount); 0 leaves it to the
	// cluster. The sizes of later ranges follow use.
	FirstSize int64
	// Timeout bounds each call of the source; 0 means DefaultTimeout. Callers' contexts do not
	// bound it, since many callers share one range.
	Timeout time.Duration
}

// Generator hands out the numbers of one tag. It is safe for concurrent use.
//
// Invariant: a caller in the queue found current empty and no range ahead, so a fetcher
// runs, and its range serves the queue first.
type Generator struct {
	// current is the range that numbers are taken from, never nil. Every call reads it, so it
	// is apart from the fields that the slow path writes.
	current atomic.Pointer[heldRange]
	_       [line - 8]byte

	source  RangeSource
	timeout time.Duration
	life    context.Context // ends when Close is done, or gave up
	cancel  context.CancelFunc
	gone    chan struct{} // closed when Close is done; closeErr is then set
	// next is the request for the next range. It belongs to the running fetcher.
	next     Request
	closeErr error

	mu      sync.Mutex // never held during a call of the source
	closed  bool
	ahead   *heldRange    // the range after current; nil if there is none
	fetcher chan struct{} // closed when the fetcher, a goroutine, ends; nil while no range is wanted
	wake    chan struct{} // closed to end the fetcher's pause; nil outside of one
	queue   queue
}

// New returns a generator. The first caller fetches the first range. The error names the
// invalid value of the Config; for FirstSize it is ErrSize.
//
// The caller must Close the generator, which returns its numbers.
func New(source RangeSource, cfg Config) (*Generator, error) {
	switch {
	case source == nil:
		return nil, errors.New("generator: there is no source")
	case cfg.FirstSize < 0 || cfg.FirstSize > MaxCount:
		return nil, ErrSize
	case cfg.Timeout < 0:
		return nil, errors.New("generator: the timeout is negative")
	case cfg.Timeout == 0:
		cfg.Timeout = DefaultTimeout
	}
	g := &Generator{
		source:  source,
		timeout: cfg.Timeout,
		gone:    make(chan struct{}),
		next:    Request{Size: cfg.FirstSize},
	}
	g.life, g.cancel = context.WithCancel(context.Background())
	g.current.Store(&heldRange{})
	return g, nil
}

// Next takes a number. It waits only if the ranges at hand have no number left, at most
// until ctx ends; a number at hand is returned even if ctx has ended.
//
// The error is ctx's, ErrClosed, or the source's error of the attempt that the call
// waited for; the next call tries again. A call with an error has taken no number.
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

// NextID takes a number as Next does, and returns its id, such as "users/65-A".
func (g *Generator) NextID(ctx context.Context) (string, error) {
	n, err := g.Next(ctx)
	return n.String(), err
}

// NextIDs takes n numbers (1 … MaxCount) and returns their ids, in ascending order. They
// need not be consecutive, nor have the same prefix and node tag, since more than one range
// may be needed.
//
// The errors are those of Next, and ErrCount. With an error it returns the ids taken before;
// they belong to the caller.
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

// take takes 1 to n numbers, and waits if none is at hand.
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
