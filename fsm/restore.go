package fsm

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"

	"github.com/idnode/idnode/client/docid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// Restore replaces the whole state by the snapshot that r reads. It needs no more memory
// than the new state beside the old one, and does not trust its input: the state is
// replaced only after the checksum, the counts and the hash are verified. After an error
// the state is unchanged.
//
// The error wraps ErrCorrupt for a damaged snapshot, ErrWrongCluster for a snapshot of another
// cluster than this state's, *raftlog.UnknownFormatError or dirfile.ErrOtherVersion for a snapshot
// of a newer release, or is r's.
func (s *State) Restore(r io.Reader) error {
	restored, err := readContents(r, s.cfg.MaxFormat)
	if err != nil {
		return fmt.Errorf("restore a snapshot: %w", err)
	}
	if err := s.replace(restored); err != nil {
		return fmt.Errorf("restore a snapshot: %w", err)
	}
	s.applied.set(restored.applied)
	s.cfg.Logger.Info("restored a snapshot", "index", restored.applied,
		"identities", restored.identities.shown.Len()+restored.identities.hidden.Len(), "hilos", restored.hilos.counters.Len(),
		"claims", restored.claims.claimed.Len(), "series", restored.series.byName.Len(), "requests", restored.requests.size)
	return nil
}

func (s *State) replace(restored *contents) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contents.formed() && !bytes.Equal(s.contents.clusterID, restored.clusterID) {
		return fmt.Errorf("%w: it is of %x, this is %x", ErrWrongCluster, restored.clusterID, s.contents.clusterID)
	}
	s.use(restored)
	restored.hilos.tellAll(math.MaxInt64) // Entries that this node never applied may have taken them.
	return nil
}

func readContents(r io.Reader, maxFormat uint32) (*contents, error) {
	header := &raftlogv1.SnapshotHeader{}
	in, err := snapshots.NewReader(r, header)
	if in == nil {
		return nil, err
	}
	// The format comes first: a newer release may have added fields, and its snapshot is too new, not damaged.
	if err := cmp.Or(checkHeader(header, maxFormat), err); err != nil {
		return nil, err
	}
	c := newContents()
	if err := c.restoreHeader(header); err != nil {
		return nil, err
	}
	if err := eachRecord(in, c.restoreRecord); err != nil {
		return nil, err
	}
	if hash := c.hash(); hash != header.GetStateHash() {
		return nil, corrupt("the state's hash is %016x, the header says %016x", hash, header.GetStateHash())
	}
	c.members.moved = false
	c.requests.restored, c.pools.restoring = nil, nil
	return c, nil
}

func (c *contents) restoreHeader(h *raftlogv1.SnapshotHeader) error {
	switch len(h.GetClusterId()) {
	case 0:
	case clusterIDBytes:
		c.clusterID = h.GetClusterId()
	default:
		return corrupt("cluster id of %d bytes", len(h.GetClusterId()))
	}
	if h.GetLogFormat() < firstFormat {
		return corrupt("log format %d", h.GetLogFormat())
	}
	c.format = h.GetLogFormat()
	c.applied = h.GetAppliedIndex()
	c.requests.floor = h.GetRequestFloor()
	return nil
}

func (c *contents) restoreRecord(m *raftlogv1.SnapshotRecord) error {
	switch r := m.GetRecord().(type) {
	case *raftlogv1.SnapshotRecord_Database:
		return c.databases.restore(r.Database)
	case *raftlogv1.SnapshotRecord_Identity:
		return c.identities.restore(r.Identity)
	case *raftlogv1.SnapshotRecord_Hilo:
		return c.hilos.restore(r.Hilo)
	case *raftlogv1.SnapshotRecord_Claim:
		return c.claims.restore(r.Claim)
	case *raftlogv1.SnapshotRecord_Released:
		return c.claims.restoreReleased(r.Released)
	case *raftlogv1.SnapshotRecord_Member:
		return c.members.restore(r.Member)
	case *raftlogv1.SnapshotRecord_Request:
		return c.requests.restore(r.Request)
	case *raftlogv1.SnapshotRecord_Session:
		return c.sessions.restore(r.Session, &c.members)
	case *raftlogv1.SnapshotRecord_Setting:
		return c.settings.restore(r.Setting)
	case *raftlogv1.SnapshotRecord_Etag:
		return c.etags.restore(r.Etag, &c.members)
	case *raftlogv1.SnapshotRecord_Floor:
		return c.floor.restore(r.Floor)
	case *raftlogv1.SnapshotRecord_Roles:
		var err error
		c.roles, err = restoredRoles(c.roles, r.Roles)
		return err
	case *raftlogv1.SnapshotRecord_JoinToken:
		return c.joinTokens.restore(r.JoinToken)
	case *raftlogv1.SnapshotRecord_MembershipIndex:
		return c.members.restoreIndex(r.MembershipIndex)
	case *raftlogv1.SnapshotRecord_Series:
		return c.series.restore(r.Series)
	case *raftlogv1.SnapshotRecord_SeriesNumbers:
		return c.series.restoreNumbers(r.SeriesNumbers)
	case *raftlogv1.SnapshotRecord_SeriesLost:
		return c.series.restoreLost(r.SeriesLost)
	case *raftlogv1.SnapshotRecord_Pool:
		return c.pools.restore(r.Pool)
	case *raftlogv1.SnapshotRecord_WorkerLease:
		return c.pools.restoreLease(r.WorkerLease)
	default:
		return corrupt("a record of no known kind")
	}
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

func newerFormat(what string, format, known uint32) error {
	return &raftlog.UnknownFormatError{What: what, Format: format, Known: known}
}

func checkHeader(h *raftlogv1.SnapshotHeader, maxFormat uint32) error {
	switch {
	case h.GetFormat() > snapshotFormat:
		return newerFormat("snapshot", h.GetFormat(), snapshotFormat)
	case h.GetLogFormat() > maxFormat:
		return newerFormat("snapshot's log", h.GetLogFormat(), maxFormat)
	case h.GetFoldVersion() > docid.FoldVersion:
		return newerFormat("snapshot's table of folded names", h.GetFoldVersion(), docid.FoldVersion)
	case h.GetFormat() != snapshotFormat || h.GetFoldVersion() != docid.FoldVersion:
		return corrupt("snapshot format %d with fold version %d", h.GetFormat(), h.GetFoldVersion())
	}
	return nil
}
