package service

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/internal/rights"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Backup writes a backup file: the state at one log index, while the node goes on
// serving. What was written counts only if the error is nil.
func (s *Service) Backup(ctx context.Context, consistency Consistency, to io.Writer) error {
	caller, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer s.leave(caller)
	return s.finish(ctx, "Backup", s.backup(ctx, consistency, to))
}

func (s *Service) backup(ctx context.Context, consistency Consistency, to io.Writer) error {
	if _, err := s.settle(ctx, consistency); err != nil {
		return err
	}
	// Settled first, so that roles that were set meanwhile guard the state.
	if err := s.authorize(ctx, rights.Backup, "", ""); err != nil {
		return err
	}
	// One at a time: each holds on to what is changed while it lasts.
	if !s.backingUp.CompareAndSwap(false, true) {
		return exhausted(ReasonOverloaded, "this node is writing another backup", retryQuorum, nil)
	}
	defer s.backingUp.Store(false)
	snapshot := s.cfg.State.Snapshot()
	defer snapshot.Close()
	header := snapshot.Header()
	w, err := backup.NewWriter(to, &raftlogv1.BackupHeader{
		ClusterId: header.GetClusterId(), LogIndex: header.GetAppliedIndex(), LogFormat: header.GetLogFormat(),
		FoldVersion: header.GetFoldVersion(), StateHash: header.GetStateHash(), RequestFloor: header.GetRequestFloor(),
		TimeUnixNano: time.Now().UnixNano(), NodeTag: s.confirmedTag(), Version: s.cfg.Version,
	})
	if err == nil {
		err = snapshot.EachRecord(s.whileServing(ctx, w.Record))
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		s.cfg.Logger.InfoContext(ctx, "a backup was written", "index", header.GetAppliedIndex())
	}
	return interrupted(err)
}

// whileServing returns record with an end to it when the caller is gone or the
// node stops: a slow reader must not hold up a clean stop.
func (s *Service) whileServing(ctx context.Context, record func(*raftlogv1.SnapshotRecord) error) func(*raftlogv1.SnapshotRecord) error {
	return func(m *raftlogv1.SnapshotRecord) error {
		switch {
		case s.draining.Load():
			return unavailable(ReasonStopping, "the node is stopping", retryBusy, nil)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		return record(m)
	}
}

// interrupted translates why a backup was not written to its end: it is the
// reader who is gone, or the node that stops.
func interrupted(err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return unavailable(ReasonStopping, "the backup was not read to its end", retryBusy, err)
}
