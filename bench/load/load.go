// Package load puts a closed-loop load on a system and measures it: callers who
// each make one call after the other. It is to the other systems what idnode
// bench is to idnode, and reports the same statistics.
//
// It owns the callers, the statistics and the check that no id came twice. What a
// call is, and where the system comes from, is for its user.
package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/idnode/idnode/internal/bench"
)

// Call takes one id.
type Call func(ctx context.Context) (id int64, err error)

// Plan says how long the load is put on.
type Plan struct {
	// WarmUp is how long the callers call before anything counts.
	WarmUp time.Duration
	// Duration is how long they call then.
	Duration time.Duration
}

// callTimeout bounds one call, as idnode bench does.
const callTimeout = 15 * time.Second

// Bounds of what a histogram can tell apart, as in idnode bench: 1 µs to a
// minute, 3 digits.
const (
	leastLatency  = 1
	mostLatency   = int64(time.Minute / time.Microsecond)
	latencyDigits = 3
)

// Run gives every call of calls a caller of its own, who makes it again and
// again, and returns what it measured after the warm-up, under the name op. It
// is an error if an id came twice; calls that failed are in the report.
func Run(ctx context.Context, plan Plan, op string, calls []Call) (bench.Report, error) {
	before := measure(ctx, plan.WarmUp, calls)
	begin := time.Now()
	total := measure(ctx, plan.Duration, calls)
	took := time.Since(begin)
	if err := ctx.Err(); err != nil {
		return bench.Report{}, err
	}
	if err := checkUnique(before.ids, total.ids); err != nil {
		return bench.Report{}, fmt.Errorf("%s with %d callers: %w", op, len(calls), err)
	}
	return total.report(op, len(calls), took), nil
}

// stats is what one caller measured. Only that caller writes it.
type stats struct {
	latency *hdrhistogram.Histogram
	ids     []int64
	errors  map[string]int64
}

func newStats() *stats {
	return &stats{latency: hdrhistogram.New(leastLatency, mostLatency, latencyDigits), errors: map[string]int64{}}
}

// measure lets every caller call for a while, and adds their statistics up.
func measure(ctx context.Context, lasts time.Duration, calls []Call) *stats {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	each := make([]*stats, len(calls))
	var callers sync.WaitGroup
	for i, call := range calls {
		each[i] = newStats()
		callers.Go(func() { each[i].repeat(ctx, call) })
	}
	callers.Wait()
	total := newStats()
	for _, f := range each {
		total.add(f)
	}
	return total
}

// repeat makes one call after the other, and one at least. A call in flight when
// ctx ends is waited for: its id counts, and its time does too.
func (s *stats) repeat(ctx context.Context, call Call) {
	for first := true; first || ctx.Err() == nil; first = false {
		callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		begin := time.Now()
		id, err := call(callCtx)
		took := time.Since(begin)
		cancel()
		if err != nil {
			s.errors[err.Error()]++
			continue
		}
		_ = s.latency.RecordValue(min(max(took.Microseconds(), leastLatency), mostLatency)) // It is within the bounds.
		s.ids = append(s.ids, id)
	}
}

func (s *stats) add(other *stats) {
	s.latency.Merge(other.latency)
	s.ids = append(s.ids, other.ids...)
	for reason, n := range other.errors {
		s.errors[reason] += n
	}
}

func (s *stats) report(op string, callers int, took time.Duration) bench.Report {
	seconds := took.Seconds()
	rate := float64(len(s.ids)) / seconds
	return bench.Report{
		Op: op, Callers: callers, Batch: 1, Names: 1, Seconds: seconds, CallsPerS: rate, IDsPerS: rate,
		P50us: s.latency.ValueAtQuantile(50), P99us: s.latency.ValueAtQuantile(99),
		P999us: s.latency.ValueAtQuantile(99.9), MaxUs: s.latency.Max(), ErrorReasons: s.errors,
	}
}

// checkUnique returns an error that names an id that came twice.
func checkUnique(all ...[]int64) error {
	seen := map[int64]struct{}{}
	for _, ids := range all {
		for _, id := range ids {
			if _, twice := seen[id]; twice {
				return fmt.Errorf("id %d came twice", id)
			}
			seen[id] = struct{}{}
		}
	}
	return nil
}
