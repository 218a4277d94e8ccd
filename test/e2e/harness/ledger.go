package harness

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
)

// Ledger keeps every number handed out and finds those that came twice. Safe
// for concurrent use.
type Ledger struct {
	mu sync.Mutex
	// given holds the caller that got a number first, by counter.
	given map[string]map[int64]string
	// twice holds what went wrong.
	twice []string
}

// NewLedger returns an empty ledger whose findings fail the test at its end.
func NewLedger(t testing.TB) *Ledger {
	l := &Ledger{given: make(map[string]map[int64]string)}
	t.Cleanup(func() {
		for _, finding := range l.twice {
			t.Error(finding)
		}
	})
	return l
}

// Record notes that who got the numbers first to last of counter.
func (l *Ledger) Record(counter, who string, first, last int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	numbers := l.given[counter]
	if numbers == nil {
		numbers = make(map[int64]string)
		l.given[counter] = numbers
	}
	for n := first; n <= last; n++ {
		if before, ok := numbers[n]; ok && len(l.twice) < 20 {
			l.twice = append(l.twice, fmt.Sprintf("%s %d came twice: to %s, then to %s", counter, n, before, who))
		}
		numbers[n] = who
	}
}

// Count is how many numbers of counter were handed out.
func (l *Ledger) Count(counter string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.given[counter]))
}

// Max is the greatest number of counter handed out.
func (l *Ledger) Max(counter string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var greatest int64
	for n := range l.given[counter] {
		greatest = max(greatest, n)
	}
	return greatest
}

// Answer is how one call of a load ended.
type Answer struct {
	Node   *Node
	Call   time.Time
	Return time.Time
	Err    error
}

// Load calls identities on nodes until it is stopped.
type Load struct {
	// OK and Unknown count the answers.
	OK, Unknown atomic.Int64
	cancel      context.CancelFunc
	callers     sync.WaitGroup

	mu      sync.Mutex
	answers []Answer
}

// StartLoad lets callers goroutines per node take identities one at a time,
// each call with the given deadline, recording into ledger under the name.
// Failed calls are kept for Failures.
func StartLoad(ledger *Ledger, nodes []*Node, name string, callers int, deadline time.Duration) *Load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Load{cancel: cancel}
	for _, n := range nodes {
		for i := range callers {
			who := fmt.Sprintf("caller %d of node %s", i, n.Tag)
			l.callers.Go(func() { l.call(ctx, ledger, n, name, who, deadline) })
		}
	}
	return l
}

func (l *Load) call(ctx context.Context, ledger *Ledger, n *Node, name, who string, deadline time.Duration) {
	for ctx.Err() == nil {
		// The call's context is not the load's: stopping the load lets calls
		// in flight end by themselves, so that their values are recorded.
		callCtx, cancel := context.WithTimeout(context.Background(), deadline)
		begin := time.Now()
		r, err := n.Ids.NextIdentity(callCtx, &idnodev1.NextIdentityRequest{Name: name})
		cancel()
		if err == nil {
			l.OK.Add(1)
			for _, b := range r.Blocks {
				ledger.Record(name, who, b.First, b.Last)
			}
			continue
		}
		if !CertainlyNothing(err) {
			l.Unknown.Add(1)
		}
		l.mu.Lock()
		l.answers = append(l.answers, Answer{Node: n, Call: begin, Return: time.Now(), Err: err})
		l.mu.Unlock()
		Pause(ctx, 2*time.Millisecond) // a refusing node is not to be hammered
	}
}

// Pause waits, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Failures are the failed calls so far.
func (l *Load) Failures() []Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Answer(nil), l.answers...)
}

// Stop ends the load and waits for the calls in flight.
func (l *Load) Stop() {
	l.cancel()
	l.callers.Wait()
}
