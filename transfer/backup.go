package transfer

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/hilo"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// Backup is a backup file that was checked from end to end.
type Backup struct {
	Path string
	// Info's databases are by their numbers in the file.
	Info *idnodev1.BackupInfo
	// Series are those of the file, in its order.
	Series []SeriesName

	etags map[string][]*raftlogv1.EtagCeiling // by the node's id, as Info has it

	// RangesOf is the HiLo counter that its clients move furthest if each holder of a range takes
	// one more, and NextRanges is the distance.
	RangesOf   string
	NextRanges int64
}

// Open reads a whole backup, and fails if any part of it is damaged.
func Open(path string) (*Backup, error) {
	b := &Backup{Path: path, etags: map[string][]*raftlogv1.EtagCeiling{}, Info: &idnodev1.BackupInfo{Counts: &idnodev1.StateCounts{}}}
	if err := b.each(b.count); err != nil {
		return nil, err
	}
	size, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	b.Info.Size = size.Size()
	b.Info.Counts.Databases = int64(len(b.Info.Databases))
	return b, nil
}

// each calls f for each record of the file. After an error nothing that f was given counts.
func (b *Backup) each(f func(*raftlogv1.SnapshotRecord) error) error {
	file, err := os.Open(b.Path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // It was only read.
	r, err := backup.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Path, err)
	}
	b.takeHeader(r.Header())
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", b.Path, err)
		}
		if err := f(m); err != nil {
			return err
		}
	}
}

// Check reads a backup to its end, and returns the first defect as an error.
func Check(in io.Reader) error {
	r, err := backup.NewReader(in)
	for err == nil {
		_, err = r.Next()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (b *Backup) takeHeader(h *raftlogv1.BackupHeader) {
	i := b.Info
	i.ClusterId, i.LogIndex, i.LogFormat = hex.EncodeToString(h.GetClusterId()), h.GetLogIndex(), h.GetLogFormat()
	i.Time, i.NodeTag, i.Version = timestamppb.New(time.Unix(0, h.GetTimeUnixNano())), h.GetNodeTag(), h.GetVersion()
	i.Format, i.StateHash = h.GetFormat(), h.GetStateHash()
}

func (b *Backup) count(m *raftlogv1.SnapshotRecord) error {
	switch r := m.GetRecord().(type) {
	case *raftlogv1.SnapshotRecord_Database:
		b.Info.Databases = append(b.Info.Databases, &idnodev1.DatabaseCounts{Database: r.Database})
	case *raftlogv1.SnapshotRecord_Setting:
		b.Info.Settings = append(b.Info.Settings, &idnodev1.Setting{Key: r.Setting.GetKey(), Value: r.Setting.GetValue()})
	case *raftlogv1.SnapshotRecord_Member:
		b.Info.Members = append(b.Info.Members, memberInfo(r.Member))
	case *raftlogv1.SnapshotRecord_Etag:
		node := hex.EncodeToString(r.Etag.GetNode())
		b.etags[node] = append(b.etags[node], r.Etag.GetCeilings()...)
	case *raftlogv1.SnapshotRecord_Floor:
		b.Info.Floor, b.Info.Epoch = r.Floor.GetNames(), r.Floor.GetEpoch()
	case *raftlogv1.SnapshotRecord_Request:
		b.Info.Counts.RequestIds++
	case *raftlogv1.SnapshotRecord_Hilo:
		b.countRanges(r.Hilo)
		return b.countName(m)
	case *raftlogv1.SnapshotRecord_Pool:
		return b.addPool(r.Pool)
	case *raftlogv1.SnapshotRecord_WorkerLease:
		return b.countLease(r.WorkerLease)
	case *raftlogv1.SnapshotRecord_Roles:
	case *raftlogv1.SnapshotRecord_Series, *raftlogv1.SnapshotRecord_SeriesNumbers:
		return b.countSeries(m)
	case *raftlogv1.SnapshotRecord_SeriesLost:
		if int(r.SeriesLost.GetDatabase()) >= len(b.Info.Databases) {
			return b.noDatabase("a series", r.SeriesLost.GetDatabase())
		}
		b.countKey(r.SeriesLost.GetKey())
	default:
		return b.countName(m)
	}
	return nil
}

func (b *Backup) addPool(p *raftlogv1.PoolRecord) error {
	database, l := p.GetDatabase(), p.GetLayout()
	if int(database) >= len(b.Info.Databases) {
		return b.noDatabase("a pool", database)
	}
	unit := time.Duration(l.GetUnitMilli()) * time.Millisecond
	b.Info.Pools = append(b.Info.Pools, &idnodev1.BackupPool{
		Database: b.Info.Databases[database].GetDatabase(), Name: p.GetName(), Window: durationpb.New(time.Duration(p.GetWindow()) * unit),
		Layout: &idnodev1.PoolLayout{
			Epoch: timestamppb.New(time.UnixMilli(l.GetEpochUnixMilli())), Unit: durationpb.New(unit),
			TimeBits: l.GetTimeBits(), WorkerBits: l.GetWorkerBits(), SequenceBits: l.GetSequenceBits(),
		},
	})
	return nil
}

// countLease counts a lease of the pool that came last, if it had not ended. A restore has no use for leases: the
// cluster gave others since.
func (b *Backup) countLease(l *raftlogv1.WorkerLease) error {
	if len(b.Info.Pools) == 0 {
		return fmt.Errorf("%s: %w: a lease before its pool", b.Path, backup.ErrCorrupt)
	}
	p := b.Info.Pools[len(b.Info.Pools)-1]
	taken := b.Info.GetTime().AsTime().Sub(p.GetLayout().GetEpoch().AsTime())
	if unit := p.GetLayout().GetUnit().AsDuration(); !l.GetFree() && unit > 0 && l.GetUntil() > int64(taken/unit) {
		p.InUse++
	}
	return nil
}

// countRanges counts the numbers that the holders of a counter's ranges may take next.
func (b *Backup) countRanges(h *raftlogv1.HiLoRecord) {
	moved := int64(0)
	for _, o := range h.GetOutstanding() {
		moved += hilo.NextSize(o.GetHigh()-o.GetLow()+1, 0, true) // At once, so the most.
	}
	if moved > b.NextRanges {
		b.RangesOf, b.NextRanges = h.GetTag(), moved
	}
}

func (b *Backup) countSeries(m *raftlogv1.SnapshotRecord) error {
	database, record := seriesRecord(m)
	if int(database) >= len(b.Info.Databases) {
		return b.noDatabase("a series", database)
	}
	in := b.Info.Databases[database]
	switch r := record.GetRecord().(type) {
	case *raftlogv1.SeriesImport_Series:
		b.Series = append(b.Series, SeriesName{in.GetDatabase(), r.Series.GetName()})
		in.Series++
		b.Info.Counts.Series++
	case *raftlogv1.SeriesImport_Numbers:
		in.SeriesNumbers += int64(len(r.Numbers.GetNumbers()))
		for _, n := range r.Numbers.GetNumbers() {
			b.countKey(n.GetKey())
		}
	}
	return nil
}

func (b *Backup) noDatabase(what string, database uint32) error {
	return fmt.Errorf("%s: %w: %s is in database %d of %d", b.Path, backup.ErrCorrupt, what, database, len(b.Info.Databases))
}

// countKey counts a key of a series; "" means no key.
func (b *Backup) countKey(key string) {
	if key != "" {
		b.Info.Counts.SeriesKeys++
		b.Info.Counts.Bytes += int64(len(key))
	}
}

// seriesRecord returns a record of a series as a cluster imports it, and its database; nil for another kind. A key whose
// number another has is none: the cluster would pass over it.
func seriesRecord(m *raftlogv1.SnapshotRecord) (database uint32, record *raftlogv1.SeriesImport) {
	switch r := m.GetRecord().(type) {
	case *raftlogv1.SnapshotRecord_Series:
		return r.Series.GetDatabase(), &raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Series{Series: r.Series}}
	case *raftlogv1.SnapshotRecord_SeriesNumbers:
		return r.SeriesNumbers.GetDatabase(), &raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: r.SeriesNumbers}}
	default:
		return 0, nil
	}
}

// countName counts a record that has a name. A record of a kind that is not known here
// would be lost by a restore, so it is refused.
func (b *Backup) countName(m *raftlogv1.SnapshotRecord) error {
	c, ok, err := b.counter(m)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w: a record of an unknown kind", b.Path, backup.ErrCorrupt)
	}
	if err != nil {
		return err
	}
	in := b.Info.Databases[numberOf(m)]
	b.Info.Counts.Bytes += int64(len(c.Name))
	switch c.Kind {
	case counterfile.Identity:
		in.Identities++
		b.Info.Counts.Identities++
	case counterfile.DeletedIdentity:
		in.DeletedIdentities++
		b.Info.Counts.DeletedIdentities++
	case counterfile.HiLo:
		in.Hilos++
		b.Info.Counts.Hilos++
	case counterfile.Claim:
		in.Claims++
		b.Info.Counts.Claims++
	}
	return nil
}

// counter returns a record as a counter; false for records of other kinds.
func (b *Backup) counter(m *raftlogv1.SnapshotRecord) (c counterfile.Counter, ok bool, err error) {
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
	if all := len(b.Info.Databases); number >= all {
		return c, false, fmt.Errorf("%s: %w: %s %q is in database %d of %d", b.Path, backup.ErrCorrupt, c.Kind, c.Name, number, all)
	}
	c.Database = b.Info.Databases[number].GetDatabase()
	return c, true, nil
}

// numberOf returns the number of the database that a named record is in.
func numberOf(m *raftlogv1.SnapshotRecord) int {
	return int(cmp.Or(m.GetIdentity().GetDatabase(), m.GetHilo().GetDatabase(), m.GetClaim().GetDatabase()))
}

// Counters calls each for the counters of the file, in its order.
func (b *Backup) Counters(each counterfile.Each) error {
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
