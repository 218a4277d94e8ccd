// Package disk knows the condition of this node's disk: whether it is nearly full, and
// whether its writes are slow.
package disk

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/bytesize"
)

// Room is what a file system has free for an ordinary user, and of how much.
type Room struct {
	Bytes, AllBytes uint64
	// Files is how many files may still be made: the free inodes. AllFiles is 0 where they
	// have no limit of their own.
	Files, AllFiles uint64
}

const (
	// lowFiles is the low-water mark of free inodes. It is the log's next segments, and
	// snapshots.
	lowFiles = 16
	// snapshotFiles is how many of them a snapshot may find: it needs three.
	snapshotFiles = 8
)

// filesBelow reports whether there are fewer free inodes than a mark.
func (r Room) filesBelow(mark uint64) bool { return r.AllFiles > 0 && r.Files < mark }

// Space knows whether the disk is nearly full, in bytes or in inodes. Proposals are refused
// before they are written, because a write that fails for lack of space ends the node.
type Space struct {
	room     func() (Room, error)
	lowWater uint64
	log      *slog.Logger
	isBelow  atomic.Bool
	// last is the room at the last check; zero if unknown.
	last atomic.Pointer[Room]
	// quorum means that a quorum of nodes reports the same.
	quorum atomic.Bool
}

// NewSpace returns a Space that has read the room once. Below lowWater bytes, or with few free
// inodes, the disk counts as nearly full.
func NewSpace(room func() (Room, error), lowWater uint64, log *slog.Logger) *Space {
	s := &Space{room: room, lowWater: lowWater, log: log}
	s.last.Store(&Room{})
	s.Check()
	return s
}

// Check reads the room. Unknown room counts as enough.
func (s *Space) Check() {
	room, err := s.room()
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			s.log.Warn("the free space of the data directory is not known", "error", err)
		}
		return
	}
	s.last.Store(&room)
	if below := room.Bytes < s.lowWater || room.filesBelow(lowFiles); s.isBelow.Swap(below) != below {
		s.log.Warn("free space on disk crossed the low-water mark", "below", below, "free_bytes", room.Bytes, "low_water_bytes", s.lowWater,
			"free_inodes", room.Files, "low_water_inodes", lowFiles)
	}
}

// Below reports whether this disk is below the low-water mark.
func (s *Space) Below() bool { return s.isBelow.Load() }

// SetQuorumFull records whether the disks of a quorum are below it.
func (s *Space) SetQuorumFull(full bool) { s.quorum.Store(full) }

// Full reports whether this disk, or those of a quorum, are below the low-water mark.
func (s *Space) Full() bool { return s.isBelow.Load() || s.quorum.Load() }

// Room returns the room at the last check; zero if unknown.
func (s *Space) Room() Room { return *s.last.Load() }

// Snapshots returns the snapshots of a store without those that would leave too little space.
// refused is called for each of these.
func (s *Space) Snapshots(of raft.SnapshotStore, refused func()) raft.SnapshotStore {
	return boundedSnapshots{of, s, refused}
}

const (
	// checkBytes is how much of a snapshot is written between checks of the free space.
	checkBytes = 1 << 20
	// smallPart is the part of the free space that a snapshot may always take, even below
	// the mark: without any snapshot the log would never shrink.
	smallPart = 8
)

// boundedSnapshots is a raft.SnapshotStore that keeps lowWater bytes free. A disk
// that a snapshot fills ends the node: its log can no longer be written.
type boundedSnapshots struct {
	raft.SnapshotStore
	space *Space
	// refused is called for each snapshot that was refused or given up.
	refused func()
}

// Create implements raft.SnapshotStore. It assumes that a snapshot is as large as the newest.
func (s boundedSnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, network raft.Transport,
) (raft.SnapshotSink, error) {
	metas, err := s.List()
	if err != nil {
		return nil, err
	}
	size := uint64(0)
	if len(metas) > 0 {
		size = uint64(metas[0].Size)
	}
	sink := &boundedSink{snapshots: s}
	if err := sink.check(size); err != nil {
		return nil, err
	}
	sink.SnapshotSink, err = s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, network)
	if err != nil {
		return nil, err
	}
	return sink, nil
}

// boundedSink checks the free space while a snapshot is written. The low-water mark is the
// node's, and no store knows it.
type boundedSink struct {
	raft.SnapshotSink
	snapshots boundedSnapshots
	// begin is the free space at the beginning, 0 before that.
	begin uint64
	// written is the snapshot's length so far, checked its length at the last check.
	written, checked uint64
}

// check fails if that many more bytes would cross the low-water mark. Unknown free
// space counts as enough.
func (k *boundedSink) check(more uint64) error {
	room, err := k.snapshots.space.room()
	if err != nil {
		return nil
	}
	free, lowWater := room.Bytes, k.snapshots.space.lowWater
	if k.begin == 0 {
		k.begin = free
		if room.filesBelow(snapshotFiles) {
			k.snapshots.refused()
			return fmt.Errorf("too few inodes for a snapshot: %d are free", room.Files)
		}
	}
	if k.written+more <= k.begin/smallPart || free >= lowWater && more <= free-lowWater {
		return nil
	}
	k.snapshots.refused()
	return fmt.Errorf("too little space for a snapshot: %s are free, of which %s are to stay free, and about %s more would be written",
		bytesize.Size(free).Rounded(), bytesize.Size(lowWater), bytesize.Size(more).Rounded())
}

// Write implements raft.SnapshotSink. After an error the snapshot is cancelled.
func (k *boundedSink) Write(b []byte) (int, error) {
	n, err := k.SnapshotSink.Write(b)
	k.written += uint64(n)
	if err != nil || k.written-k.checked < checkBytes {
		return n, err
	}
	k.checked = k.written
	return n, k.check(0)
}
