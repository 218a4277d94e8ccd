package generator_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/idnode/idnode/client/generator"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// model is a source that follows the cluster's own rules and knows the outcome of every
// number. The zero model answers at once.
type model struct {
	// size gives the size of a range where the request leaves it open; nil means the
	// last size, doubled.
	size func() int64
	// before is called ahead of each call without the lock, nil for nothing: it can
	// wait, or fail the call before anything happened.
	before func(ctx context.Context) error
	// after is called behind each reservation: if it fails, the answer is lost.
	after func() error

	mu       sync.Mutex
	counter  counted
	calls    int
	requests []generator.Request
	busy     bool
	ranges   []generator.Range // whose answers arrived
	lost     int
	returns  []string // "low-high:last"
	ignored  int      // returns that did nothing
	overlap  bool     // two calls at the same time
}

func (m *model) enter(ctx context.Context) error {
	m.mu.Lock()
	m.calls++
	m.overlap = m.overlap || m.busy
	m.busy = true
	m.mu.Unlock()
	if m.before != nil {
		return m.before(ctx)
	}
	return nil
}

func (m *model) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = false
}

// Next is part of generator.RangeSource.
func (m *model) Next(ctx context.Context, req generator.Request) (generator.Range, error) {
	defer m.leave()
	if err := m.enter(ctx); err != nil {
		return generator.Range{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, req)
	size := req.Size
	switch {
	case size != 0:
	case m.size != nil:
		size = m.size()
	default:
		size = min(max(2*req.LastSize, 32), generator.MaxCount)
	}
	token := uint64(len(m.requests))
	low, high := m.counter.next(size, req.LastMax)
	if m.after != nil {
		if err := m.after(); err != nil {
			m.lost++
			return generator.Range{}, err
		}
	}
	answer := generator.Range{
		Low: low, High: high, Granted: size, Prefix: "users/", NodeTag: "A",
		At: time.Unix(int64(token), 0), Token: strconv.FormatUint(token, 10),
	}
	m.ranges = append(m.ranges, answer)
	return answer, nil
}

// Return is part of generator.RangeSource.
func (m *model) Return(ctx context.Context, r generator.Range, last int64) error {
	defer m.leave()
	if err := m.enter(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.returns = append(m.returns, fmt.Sprintf("%d-%d:%d", r.Low, r.High, last))
	if !slices.Contains(m.ranges, r) || !m.counter.takeBack(r.Low, r.High, last) { // With its token.
		m.ignored++
	}
	return nil
}

// counted are the ranges of a tag, as hilo.Counter has them in the servers.
type counted struct {
	Max, peak int64
	newest    [][2]int64 // that can be given back, the newest last
}

// next issues a range above all that are in use. It ends where none did before.
func (c *counted) next(size, lastMax int64) (low, high int64) {
	if lastMax > c.Max {
		c.Max, c.newest = lastMax, nil
	}
	low, high = c.Max+1, max(c.Max+size, c.peak+1)
	c.Max, c.peak, c.newest = high, high, append(c.newest, [2]int64{low, high})
	return low, high
}

// takeBack takes back the numbers above last of the newest range. If it has them all, the range
// before it is the newest again.
func (c *counted) takeBack(low, high, last int64) bool {
	older := len(c.newest) - 1
	if older < 0 || c.newest[older] != [2]int64{low, high} || last < low-1 || last > high {
		return false
	}
	c.Max, c.newest = last, c.newest[:older]
	if last >= low {
		c.newest = nil
	}
	return true
}

// verify checks the numbers that callers got: each is of a range whose answer
// arrived, none came twice, and none is among those that the cluster took back.
func (m *model) verify(t tester, taken []int64) {
	t.Helper()
	slices.Sort(taken)
	ranges := m.ranges // they rise
	for i, n := range taken {
		if i > 0 && taken[i-1] == n {
			t.Fatalf("%d was handed out twice", n)
		}
		for len(ranges) > 0 && ranges[0].High < n {
			ranges = ranges[1:]
		}
		if len(ranges) == 0 || n < ranges[0].Low {
			t.Fatalf("%d is of no range that arrived", n)
		}
	}
	if len(taken) > 0 && taken[len(taken)-1] > m.counter.Max {
		t.Fatalf("%d was handed out though it was given back: Max is %d", taken[len(taken)-1], m.counter.Max)
	}
	if m.overlap {
		t.Fatalf("the source was called twice at the same time")
	}
}

// verifyWhole checks that every number that was ever reserved was handed out or
// given back.
func (m *model) verifyWhole(t tester, taken []int64) {
	t.Helper()
	m.verify(t, taken)
	if int64(len(taken)) != m.counter.Max {
		t.Fatalf("%d numbers were handed out, but Max is %d: returns %v, ranges %v",
			len(taken), m.counter.Max, m.returns, m.ranges)
	}
}

// values returns the numbers of ids such as "users/65-A".
func values(ids []string) []int64 {
	numbers := make([]int64, len(ids))
	for i, id := range ids {
		digits := strings.TrimSuffix(strings.TrimPrefix(id, "users/"), "-A")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			panic(err) // the id is none of the model's
		}
		numbers[i] = n
	}
	return numbers
}

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newGenerator(t tester, s generator.RangeSource, cfg generator.Config) *generator.Generator {
	t.Helper()
	g, err := generator.New(s, cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return g
}

// takers runs goroutines that take numbers until each has as many as asked for or
// gets an error, and gathers the numbers.
type takers struct {
	wg    sync.WaitGroup
	mu    sync.Mutex
	taken []int64
	errs  []error
}

func (ts *takers) start(ctx context.Context, g *generator.Generator, callers, each int) {
	for range callers {
		ts.wg.Go(func() {
			var own []int64
			var err error
			for len(own) < each && err == nil {
				var n generator.Number
				if n, err = g.Next(ctx); err == nil {
					own = append(own, n.Value())
				}
			}
			ts.add(own, err)
		})
	}
}

func (ts *takers) add(numbers []int64, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.taken = append(ts.taken, numbers...)
	if err != nil {
		ts.errs = append(ts.errs, err)
	}
}
