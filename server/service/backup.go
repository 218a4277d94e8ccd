package service

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// maxBackups bounds the backups that a node writes at once: each keeps the old version of
// everything that changes meanwhile in memory.
const maxBackups = 4

type backups struct {
	*base
	version string
	// running is the number of backups being written, and of has the names of their callers.
	running atomic.Int64
	of      sync.Map
}

// Backup writes a backup file: the state at one log index. The node continues to serve. The file
// is valid only if the error is nil.
func (b *backups) Backup(ctx context.Context, consistency idnodev1.Consistency, to io.Writer) error {
	_, err := admission.UntimedCall(ctx, b.Control, "Backup", consistency,
		func(ctx context.Context, consistency idnodev1.Consistency) (struct{}, error) {
			return struct{}{}, b.backup(ctx, consistency, to)
		})
	return err
}

func (b *backups) backup(ctx context.Context, consistency idnodev1.Consistency, to io.Writer) error {
	within, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	if _, err := b.settle(within, consistency); err != nil {
		return err
	}
	// Settled first, so that roles that were set meanwhile guard the state.
	if err := b.Authorize(ctx, rights.Backup, "", ""); err != nil {
		return err
	}
	if who := b.Principal(ctx); who != "" {
		if _, another := b.of.LoadOrStore(who, nil); another {
			return apierror.Exhausted(apierror.ReasonOverloaded, "this node is writing a backup for this caller already", apierror.RetryQuorum, nil)
		}
		defer b.of.Delete(who)
	}
	defer b.running.Add(-1)
	if b.running.Add(1) > maxBackups {
		return apierror.Exhausted(apierror.ReasonOverloaded, "this node is writing as many backups as it may", apierror.RetryQuorum, nil)
	}
	return b.Audited(ctx, audit.Record{Event: audit.EventBackup}, func() (admission.Change, error) {
		out := &backup.Counted{Writer: to}
		index, err := b.writeBackup(ctx, out)
		return admission.Change{Index: index, After: audit.Copied{Bytes: out.Bytes}, Partly: out.Bytes > 0}, interrupted(err)
	})
}

// writeBackup returns the index at which the state was.
func (b *backups) writeBackup(ctx context.Context, to io.Writer) (uint64, error) {
	snapshot := b.state.Snapshot()
	defer snapshot.Close()
	header := snapshot.Header()
	w, err := backup.NewWriter(to, &raftlogv1.BackupHeader{
		ClusterId: header.GetClusterId(), LogIndex: header.GetAppliedIndex(), LogFormat: header.GetLogFormat(),
		FoldVersion: header.GetFoldVersion(), StateHash: header.GetStateHash(),
		TimeUnixNano: time.Now().UnixNano(), NodeTag: b.tag.confirmed(), Version: b.version,
	})
	if err == nil {
		err = snapshot.EachRecord(b.whileServing(ctx, w.Record))
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		b.events.BackedUp()
		b.logger.InfoContext(ctx, "a backup was written", "index", header.GetAppliedIndex())
	}
	return header.GetAppliedIndex(), err
}

// whileServing returns record with an end to it when the caller is gone or has lost the
// right, or the node stops: a slow reader must not hold up a clean stop.
func (b *backups) whileServing(ctx context.Context, record func(*raftlogv1.SnapshotRecord) error) func(*raftlogv1.SnapshotRecord) error {
	judged := ^uint64(0) // None: roles may have been set since the caller was judged.
	return func(m *raftlogv1.SnapshotRecord) error {
		if now := b.state.Roles().SetAt; now != judged {
			if err := b.Authorize(ctx, rights.Backup, "", ""); err != nil {
				return err
			}
			judged = now
		}
		switch {
		case b.Draining():
			return apierror.Stopping(nil)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		return record(m)
	}
}

// interrupted translates why a backup was not written to its end: it is the
// reader that is gone, or the node that stops.
func interrupted(err error) error {
	if _, known := errors.AsType[*apierror.Error](err); known || err == nil {
		return err
	}
	return apierror.Unavailable(apierror.ReasonStopping, "the backup was not read to its end", apierror.RetryBusy, err)
}
