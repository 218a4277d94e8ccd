package raftguard

import (
	"context"
	"fmt"

	"github.com/idnode/idnode/cluster/member"
)

// DeleteRange implements raft.LogStore. The library deletes the beginning of the log when
// it has a snapshot, and keeps the newest entries; here those stay, too, that a follower needs
// to catch up. It deletes the end of the log when the leader has other entries there,
// without a check whether they are applied.
//
// The two may coincide: while the goroutine of snapshots computes which entries to keep, the
// main goroutine replaces the end. Then the whole log is to be deleted, and all of it is
// committed. It is kept until an append shows which of the two it was; entries that a snapshot
// covers are harmless.
func (s *RaftStore) DeleteRange(first, last uint64) error {
	if err := s.Flush(context.Background()); err != nil {
		return err
	}
	begin, err := s.FirstIndex()
	if err != nil {
		return err
	}
	end, err := s.LastIndex()
	if err != nil {
		return err
	}
	if first == begin && last < end {
		last = min(last, max(s.cfg.Needed(), 1)-1)
	}
	switch committed := s.cfg.Committed(); {
	case last < first:
		return nil
	case end == 0 || last < end || first > committed:
		return s.Store.DeleteRange(first, last)
	case first == begin && last <= committed:
		s.kept.Store(last)
		return nil
	default:
		return s.takenBack(first, last, committed)
	}
}

func (s *RaftStore) takenBack(first, last, committed uint64) error {
	err := fmt.Errorf("%w: entries %d to %d were to be deleted, and %d is committed", member.ErrTakenBack, first, last, committed)
	s.cfg.Fatal(err)
	return err
}
