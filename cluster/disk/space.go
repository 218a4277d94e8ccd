// Package disk knows the condition of this node's disk: whether it is nearly full, and
// whether its writes are slow.
package disk

import (
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// Space knows whether the disk is nearly full. Proposals are refused before they are
// written, because a write that fails for lack of space ends the node.
type Space struct {
	free     func() (uint64, error)
	lowWater uint64
	log      *slog.Logger
	isBelow  atomic.Bool
	// left is the free space in bytes at the last check; 0 if unknown.
	left atomic.Uint64
	// quorum means that a quorum of nodes reports the same.
	quorum atomic.Bool
}

// NewSpace returns a Space that has read the free space once. Below lowWater bytes the disk
// counts as nearly full.
func NewSpace(free func() (uint64, error), lowWater uint64, log *slog.Logger) *Space {
	s := &Space{free: free, lowWater: lowWater, log: log}
	s.Check()
	return s
}

// Check reads the free space. Unknown free space counts as enough.
func (s *Space) Check() {
	free, err := s.free()
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			s.log.Warn("the free space of the data directory is not known", "error", err)
		}
		return
	}
	s.left.Store(free)
	if below := free < s.lowWater; s.isBelow.Swap(below) != below {
		s.log.Warn("free space on disk crossed the low-water mark", "below", below, "free_bytes", free, "low_water_bytes", s.lowWater)
	}
}

func (s *Space) Below() bool { return s.isBelow.Load() }

// SetQuorumFull records whether the disks of a quorum are below it.
func (s *Space) SetQuorumFull(full bool) { s.quorum.Store(full) }

// Full reports whether this disk, or those of a quorum, are below the low-water mark.
func (s *Space) Full() bool { return s.isBelow.Load() || s.quorum.Load() }

func (s *Space) FreeBytes() uint64 { return s.left.Load() }

// Snapshots returns the snapshots of a store without those that would leave too little space.
// refused is called for each of these; it may be nil.
func (s *Space) Snapshots(of raft.SnapshotStore, refused func()) raft.SnapshotStore {
	return boundedSnapshots{of, s.free, s.lowWater, refused}
}
