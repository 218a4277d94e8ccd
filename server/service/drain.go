package service

import (
	"context"
	"fmt"
	"time"
)

// drainPause is the time between two looks at the calls in flight. They end within
// milliseconds, unless the cluster is in trouble.
const drainPause = 2 * time.Millisecond

// Drain refuses new calls with STOPPING from now on, and waits until those in
// flight have ended, or ctx has. Reads of the status go on.
func (s *Service) Drain(ctx context.Context) error {
	s.draining.Store(true)
	tick := time.NewTicker(drainPause)
	defer tick.Stop()
	for {
		left := s.inFlight.Load()
		if left == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d calls are still in flight: %w", left, ctx.Err())
		}
	}
}
