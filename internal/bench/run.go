package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/internal/pause"
)

// callTimeout bounds one call. It is longer than a node waits for a leader.
const callTimeout = 15 * time.Second

// refusedPause keeps the callers of a node that refuses at once, as one that restarts, from taking
// the processor that the others are measured with.
const refusedPause = 10 * time.Millisecond

// taker makes one call: the i-th of a caller. It returns the ids it took.
type taker func(ctx context.Context, caller, i int) ([]block, error)

// Progress is how far a run is; it may be read at any time.
type Progress struct {
	calls, ids, failed atomic.Int64
}

// Counts returns the calls answered, the ids taken and the calls failed so far.
func (p *Progress) Counts() (calls, ids, failed int64) {
	return p.calls.Load(), p.ids.Load(), p.failed.Load()
}

// Run puts the load on, until ctx ends at the latest, and returns what was measured. An error means that the run could
// not be made, or that an id came twice; calls that failed are in the report.
func Run(ctx context.Context, c Config, progress *Progress) (Report, error) {
	if err := c.Validate(); err != nil {
		return Report{}, err
	}
	if c.Via == ViaClient && c.Client == nil || (c.Via != ViaClient || c.Op == Series) && len(c.Conns) == 0 {
		return Report{}, errors.New("there is no endpoint")
	}
	takers, end, err := c.takers(ctx)
	if err != nil {
		return Report{}, err
	}
	// The time begins when everything is there, so that it is never shorter than what was asked for.
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.Duration)
	defer cancel()
	total := measure(ctx, c.Callers, takers, progress)
	took := time.Since(begin)
	end()
	return total.report(c, took), checkUnique(total.taken)
}

// measure lets every caller call until ctx ends, spread over the takers, and adds their statistics up.
func measure(ctx context.Context, callers int, takers []taker, progress *Progress) *stats {
	each := make([]*stats, callers)
	var running sync.WaitGroup
	for caller := range each {
		each[caller] = newStats()
		running.Go(func() { each[caller].call(ctx, takers[caller%len(takers)], caller, progress) })
	}
	running.Wait()
	total := newStats()
	for _, f := range each {
		total.add(f)
	}
	return total
}

// call makes one call after the other. One in flight when ctx ends counts, with its ids and its time.
func (s *stats) call(ctx context.Context, take taker, caller int, progress *Progress) {
	for i := 0; ctx.Err() == nil; i++ {
		callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		begin := time.Now()
		taken, err := take(callCtx, caller, i)
		cancel()
		if err != nil {
			s.errors[reasonOf(err)]++
			progress.failed.Add(1)
			pause.For(ctx, refusedPause)
			continue
		}
		before := s.ids
		s.answered(time.Since(begin), taken)
		progress.calls.Add(1)
		progress.ids.Add(s.ids - before)
	}
}

// reasonOf is idnode's own reason, or gRPC's code in words.
func reasonOf(err error) string {
	var known *client.Error
	if errors.As(err, &known) && known.Reason != "" {
		return known.Reason
	}
	s := status.Convert(err)
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.Reason
		}
	}
	return s.Code().String()
}
