package disk

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// snapshotOf writes a snapshot of so many bytes, and shrinks the free space by what is
// written.
func snapshotOf(s boundedSnapshots, bytes int, free *uint64) error {
	_, network := raft.NewInmemTransport("")
	sink, err := s.Create(1, 9, 2, raft.Configuration{}, 1, network)
	if err != nil {
		return err
	}
	for piece := make([]byte, checkBytes/2); bytes > 0; bytes -= len(piece) {
		*free -= uint64(len(piece))
		if _, err := sink.Write(piece); err != nil {
			return errors.Join(err, sink.Cancel())
		}
	}
	return sink.Close()
}

// TestSnapshotsKeepTheMarkOfFreeSpace: a disk that one fills up ends the node.
func TestSnapshotsKeepTheMarkOfFreeSpace(t *testing.T) {
	const mb = 1 << 20
	for name, c := range map[string]struct {
		free, mark uint64
		// newest is the size of the snapshot before, size of this one.
		newest, size int
		// files are the free inodes; 0 if they have no limit.
		files uint64
		taken bool
	}{
		"it fits":                        {free: 200 * mb, mark: 64 * mb, newest: 100 * mb, size: 100 * mb, taken: true},
		"the one before would not fit":   {free: 150 * mb, mark: 64 * mb, newest: 100 * mb, size: mb},
		"it grows beyond what is left":   {free: 150 * mb, mark: 64 * mb, newest: mb, size: 100 * mb},
		"the first does not fit":         {free: 80 * mb, mark: 64 * mb, size: 100 * mb},
		"the inodes suffice":             {free: 200 * mb, mark: 64 * mb, size: 100 * mb, files: snapshotFiles, taken: true},
		"too few inodes":                 {free: 200 * mb, mark: 64 * mb, size: mb, files: snapshotFiles - 1},
		"below the mark":                 {free: 50 * mb, mark: 64 * mb, newest: 10 * mb, size: 10 * mb},
		"a small one lets the log go":    {free: 50 * mb, mark: 64 * mb, newest: 2 * mb, size: 2 * mb, taken: true},
		"one that was small before only": {free: 50 * mb, mark: 64 * mb, newest: 2 * mb, size: 30 * mb},
	} {
		free, refused := uint64(1<<40), 0
		s := boundedSnapshots{
			SnapshotStore: raft.NewInmemSnapshotStore(), refused: func() { refused++ },
			space: &Space{room: func() (Room, error) { return Room{Bytes: free, Files: c.files, AllFiles: c.files}, nil }, lowWater: c.mark},
		}
		if c.newest > 0 {
			if err := snapshotOf(s, c.newest, &free); err != nil {
				t.Fatal(err)
			}
		}
		free = c.free
		err := snapshotOf(s, c.size, &free)
		if (err == nil) != c.taken || (refused == 0) != c.taken {
			t.Errorf("%s: %v, %d refused", name, err, refused)
		}
		if err != nil && free < min(c.free-c.free/smallPart, c.mark)-2*checkBytes {
			t.Errorf("%s: %d bytes are left", name, free)
		}
	}
}

func TestSnapshotsWithoutKnownSpaceAreTaken(t *testing.T) {
	free := uint64(1 << 40)
	s := boundedSnapshots{
		SnapshotStore: raft.NewInmemSnapshotStore(),
		space:         &Space{room: func() (Room, error) { return Room{}, errors.ErrUnsupported }, lowWater: 64 << 20},
	}
	if err := snapshotOf(s, 10<<20, &free); err != nil {
		t.Error(err)
	}
}
