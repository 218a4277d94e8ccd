package cluster

import (
	"errors"
	"log/slog"
	"sync/atomic"
)

// space knows whether the disk is nearly full. Proposals are refused before they are
// written, because a write that fails for lack of space ends the node.
type space struct {
	free     func() (uint64, error)
	lowWater uint64
	log      *slog.Logger
	below    atomic.Bool
	// left is the free space in bytes at the last check; 0 if unknown.
	left atomic.Uint64
	// others means that a quorum of nodes reports the same.
	others atomic.Bool
}

func newSpace(free func() (uint64, error), lowWater uint64, log *slog.Logger) *space {
	s := &space{free: free, lowWater: lowWater, log: log}
	s.look()
	return s
}

// look checks the free space. Unknown free space counts as enough.
func (s *space) look() {
	free, err := s.free()
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			s.log.Warn("the free space of the data directory is not known", "error", err)
		}
		return
	}
	s.left.Store(free)
	if below := free < s.lowWater; s.below.Swap(below) != below {
		s.log.Warn("free space on disk crossed the low-water mark", "below", below, "free_bytes", free, "low_water_bytes", s.lowWater)
	}
}

// full reports whether this disk, or those of a quorum, are below the low-water mark.
func (s *space) full() bool { return s.below.Load() || s.others.Load() }
