package service

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/backup"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// maxBackups is how many a node writes at once: each holds on to what is changed while
// it lasts.
const maxBackups = 4

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
	if who := s.caller(ctx).Principal; who != "" {
		if _, another := s.backupOf.LoadOrStore(who, nil); another {
			return exhausted(ReasonOverloaded, "this node is writing a backup for this caller already", retryQuorum, nil)
		}
		defer s.backupOf.Delete(who)
	}
	defer s.backups.Add(-1)
	if s.backups.Add(1) > maxBackups {
		return exhausted(ReasonOverloaded, "this node is writing as many backups as it may", retryQuorum, nil)
	}
	return s.audited(ctx, audit.Record{Event: audit.EventBackup}, func() (change, error) {
		out := &backup.Counted{Writer: to}
		index, err := s.writeBackup(ctx, out)
		return change{index: index, after: audit.Copied{Bytes: out.Bytes}, partly: out.Bytes > 0}, interrupted(err)
	})
}

// writeBackup returns the index at which the state was.
func (s *Service) writeBackup(ctx context.Context, to io.Writer) (uint64, error) {
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
	return header.GetAppliedIndex(), err
}

// whileServing returns record with an end to it when the caller is gone or has lost the
// right, or the node stops: a slow reader must not hold up a clean stop.
func (s *Service) whileServing(ctx context.Context, record func(*raftlogv1.SnapshotRecord) error) func(*raftlogv1.SnapshotRecord) error {
	judged := ^uint64(0) // None: roles may have been set since the caller was judged.
	return func(m *raftlogv1.SnapshotRecord) error {
		if now := s.cfg.State.Roles().SetAt; now != judged {
			if err := s.authorize(ctx, rights.Backup, "", ""); err != nil {
				return err
			}
			judged = now
		}
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
// reader that is gone, or the node that stops.
func interrupted(err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return unavailable(ReasonStopping, "the backup was not read to its end", retryBusy, err)
}
