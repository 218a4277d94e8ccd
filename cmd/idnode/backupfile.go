package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/backup"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// backupFile is a backup that was checked from end to end.
type backupFile struct {
	path string
	// databases are by number.
	databases []string
	members   []*raftlogv1.Member
	etags     map[string]*raftlogv1.EtagRecord // by the node's raw id
	settings  []*raftlogv1.SettingRecord
	floor     *raftlogv1.FloorRecord
	info      *idnodev1.BackupInfo
}

// inspectBackup checks a backup and says what it holds.
func inspectBackup(path string) (*idnodev1.BackupInfo, error) {
	b, err := openBackup(path)
	if err != nil {
		return nil, err
	}
	return b.info, nil
}

// openBackup reads a whole backup, of which nothing counts if it is damaged.
func openBackup(path string) (*backupFile, error) {
	b := &backupFile{path: path, etags: map[string]*raftlogv1.EtagRecord{}, info: &idnodev1.BackupInfo{Counts: &idnodev1.StateCounts{}}}
	if err := b.each(b.count); err != nil {
		return nil, err
	}
	size, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	b.info.Size = size.Size()
	b.info.Counts.Databases = int64(len(b.databases))
	b.info.Floor, b.info.Epoch = b.floor.GetNames(), b.floor.GetEpoch()
	return b, nil
}

// each calls f for each record of the file. After an error nothing that f was
// given counts.
func (b *backupFile) each(f func(*raftlogv1.SnapshotRecord) error) error {
	file, err := os.Open(b.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // It was only read.
	r, err := backup.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", b.path, err)
	}
	b.takeHeader(r.Header())
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", b.path, err)
		}
		if err := f(m); err != nil {
			return err
		}
	}
}

func (b *backupFile) takeHeader(h *raftlogv1.BackupHeader) {
	i := b.info
	i.ClusterId, i.LogIndex, i.LogFormat = hex.EncodeToString(h.GetClusterId()), h.GetLogIndex(), h.GetLogFormat()
	i.Time, i.NodeTag, i.Version = timestamppb.New(time.Unix(0, h.GetTimeUnixNano())), h.GetNodeTag(), h.GetVersion()
	i.Format, i.StateHash = h.GetFormat(), h.GetStateHash()
}

// count counts one record.
func (b *backupFile) count(m *raftlogv1.SnapshotRecord) error {
	switch r := m.GetRecord().(type) {
	case *raftlogv1.SnapshotRecord_Database:
		b.databases = append(b.databases, r.Database)
		b.info.Databases = append(b.info.Databases, &idnodev1.DatabaseCounts{Database: r.Database})
	case *raftlogv1.SnapshotRecord_Setting:
		b.settings = append(b.settings, r.Setting)
		b.info.Settings = append(b.info.Settings, &idnodev1.Setting{Key: r.Setting.GetKey(), Value: r.Setting.GetValue()})
	case *raftlogv1.SnapshotRecord_Member:
		b.members = append(b.members, r.Member)
		b.info.Members = append(b.info.Members, memberInfo(r.Member))
	case *raftlogv1.SnapshotRecord_Etag:
		b.etags[string(r.Etag.GetNode())] = r.Etag
	case *raftlogv1.SnapshotRecord_Floor:
		b.floor = r.Floor
	case *raftlogv1.SnapshotRecord_Request:
		b.info.Counts.RequestIds++
	default:
		return b.countName(m)
	}
	return nil
}

// countName counts a record that has a name.
func (b *backupFile) countName(m *raftlogv1.SnapshotRecord) error {
	c, ok, err := b.counter(m)
	if err != nil || !ok {
		return err
	}
	in := b.info.Databases[numberOf(m)]
	b.info.Counts.Bytes += int64(len(c.Name))
	switch c.Kind {
	case counterfile.Identity:
		in.Identities++
		b.info.Counts.Identities++
	case counterfile.DeletedIdentity:
		in.DeletedIdentities++
		b.info.Counts.Identities++
	case counterfile.HiLo:
		in.Hilos++
		b.info.Counts.Hilos++
	case counterfile.Claim:
		in.Claims++
		b.info.Counts.Claims++
	}
	return nil
}

// counter returns a record as a counter; false if it is of another kind.
func (b *backupFile) counter(m *raftlogv1.SnapshotRecord) (c counterfile.Counter, ok bool, err error) {
	switch r := m.GetRecord().(type) {
	case *raftlogv1.SnapshotRecord_Identity:
		c = counterfile.Counter{Kind: counterfile.Identity, Name: r.Identity.GetName(), Value: r.Identity.GetLast()}
		if r.Identity.GetHidden() {
			c.Kind = counterfile.DeletedIdentity
		}
	case *raftlogv1.SnapshotRecord_Hilo:
		c = counterfile.Counter{Kind: counterfile.HiLo, Name: r.Hilo.GetTag(), Value: r.Hilo.GetMax(), Peak: r.Hilo.GetPeak()}
	case *raftlogv1.SnapshotRecord_Claim:
		c = counterfile.Counter{Kind: counterfile.Claim, Name: r.Claim.GetId()}
	default:
		return c, false, nil
	}
	number := numberOf(m)
	if number >= len(b.databases) {
		return c, false, fmt.Errorf("%s: %w: %s %q is in database %d of %d", b.path, backup.ErrCorrupt, c.Kind, c.Name, number, len(b.databases))
	}
	c.Database = b.databases[number]
	return c, true, nil
}

// numberOf returns the number of the database that a named record is in.
func numberOf(m *raftlogv1.SnapshotRecord) int {
	switch r := m.GetRecord().(type) {
	case *raftlogv1.SnapshotRecord_Identity:
		return int(r.Identity.GetDatabase())
	case *raftlogv1.SnapshotRecord_Hilo:
		return int(r.Hilo.GetDatabase())
	case *raftlogv1.SnapshotRecord_Claim:
		return int(r.Claim.GetDatabase())
	default:
		return 0
	}
}

// counters calls each for the counters of the file, in its order.
func (b *backupFile) counters(each counterfile.Each) error {
	return b.each(func(m *raftlogv1.SnapshotRecord) error {
		c, ok, err := b.counter(m)
		if err != nil || !ok {
			return err
		}
		return each(c)
	})
}

// memberInfo shows a member of a backup, which does not know the leader.
func memberInfo(m *raftlogv1.Member) *idnodev1.Member {
	role := idnodev1.Role_ROLE_JOINING
	switch {
	case m.GetRemoved():
		role = idnodev1.Role_ROLE_REMOVED
	case m.GetWatcher():
		role = idnodev1.Role_ROLE_WATCHER
	case m.GetVoter():
		role = idnodev1.Role_ROLE_FOLLOWER
	}
	return &idnodev1.Member{
		Tag: m.GetTag(), Id: hex.EncodeToString(m.GetId()), Role: role, LogFormat: m.GetLogFormat(),
		GrpcAddress: m.GetGrpcAddress(), RaftAddress: m.GetRaftAddress(), HttpAddress: m.GetHttpAddress(),
	}
}
