package fsm

import (
	"bufio"
	"cmp"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/internal/crc32c"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

const (
	// snapshotMagic begins every snapshot, of any format.
	snapshotMagic = "idnode snapshot\n"
	// snapshotFormat is the newest snapshot format that is read and written.
	snapshotFormat = 1
	// snapshotBuffer is the size of a write: about a millisecond's work, so that a paced writer
	// pauses evenly.
	snapshotBuffer = 64 << 10
)

// WriteTo writes the snapshot and returns how many bytes that took. It may run
// beside Apply.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	out := &snapshotWriter{w: bufio.NewWriterSize(w, snapshotBuffer)}
	out.write([]byte(snapshotMagic))
	out.frame(s.header)
	s.writeCluster(out)
	s.writeNames(out)
	s.writeOwn(out)
	s.writeRequests(out)
	return out.end()
}

// EachRecord calls f for each record in the snapshot's order, until f returns an error,
// and returns that. It leaves out sessions and the membership's index, which are
// meaningless outside the log, join tokens, which another cluster must not restore, and
// released ids. A record is valid until f returns. EachRecord may run beside Apply.
func (s *Snapshot) EachRecord(f func(*raftlogv1.SnapshotRecord) error) error {
	out := &snapshotWriter{each: f}
	s.writeCluster(out)
	s.writeNames(out)
	s.writeRequests(out)
	return out.err
}

// writeCluster writes what is not many.
func (s *Snapshot) writeCluster(out *snapshotWriter) {
	for _, name := range s.databases {
		out.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Database{Database: name}})
	}
	for id := range settingCount {
		if s.settings.changed(id) {
			setting := &raftlogv1.SettingRecord{Key: settingTable[id].Key, Value: s.settings.value(id)}
			out.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Setting{Setting: setting}})
		}
	}
	if r := s.roles; r != nil {
		record := &raftlogv1.RolesRecord{Table: r.encoded, LogIndex: r.setAt}
		out.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Roles{Roles: record}})
	}
	if f := s.floor; f != (floor{}) {
		record := &raftlogv1.FloorRecord{Names: f.names, Epoch: f.epoch, Series: f.series}
		out.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Floor{Floor: record}})
	}
	for _, m := range s.members {
		out.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Member{Member: m}})
	}
	for _, e := range s.etags {
		e.write(out)
	}
}

// writeOwn writes what is no use to another cluster.
func (s *Snapshot) writeOwn(out *snapshotWriter) {
	if s.membership != 0 {
		out.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_MembershipIndex{MembershipIndex: s.membership}})
	}
	for i := range s.sessions {
		s.sessions[i].write(out)
	}
	for _, t := range s.joinTokens {
		out.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_JoinToken{JoinToken: t}})
	}
	out.released(s.released)
}

// etagsInRecord is how many databases a record of etags has at most: with the longest
// names it is as long as the largest records of other kinds.
const etagsInRecord = 256

// write writes a node's etags: a record, and further records for databases that do not fit.
func (e *etagRecord) write(out *snapshotWriter) {
	counters := e.counters
	for more := true; more; more = len(counters) > 0 {
		m := &raftlogv1.EtagRecord{Node: e.node[:], Start: e.start, Clean: e.clean, Floor: e.floor}
		n := min(len(counters), etagsInRecord)
		for _, c := range counters[:n] {
			m.Ceilings = append(m.Ceilings, &raftlogv1.EtagCeiling{Database: c.database, Ceiling: c.ceiling, Last: c.last, Floor: c.floor})
		}
		counters = counters[n:]
		out.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Etag{Etag: m}})
	}
}

// write writes a session: a record without results, then a record for each group's results, so
// that no record is larger than a group makes it.
func (v *session) write(out *snapshotWriter) {
	out.session(&raftlogv1.SessionRecord{Origin: v.origin[:], Session: v.number, Acknowledged: v.acknowledged})
	for _, r := range v.results {
		result := &raftlogv1.SessionResult{Sequence: r.sequence, Results: r.results}
		out.session(&raftlogv1.SessionRecord{
			Origin: v.origin[:], Session: v.number, Acknowledged: v.acknowledged,
			Results: []*raftlogv1.SessionResult{result},
		})
	}
}

func (w *snapshotWriter) session(s *raftlogv1.SessionRecord) {
	w.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Session{Session: s}})
}

func (s *Snapshot) writeNames(out *snapshotWriter) {
	out.identities(s.identities, false)
	out.identities(s.hidden, true)
	out.hilos(s.hilos)
	out.claims(s.claims)
	for i := range s.series {
		out.series(&s.series[i])
	}
	for i := range s.pools {
		out.pool(&s.pools[i])
	}
}

// identities writes a table of identities. There are many, so one message is reused for all;
// likewise below.
func (w *snapshotWriter) identities(all table.Frozen[identityValue], hidden bool) {
	m := &raftlogv1.IdentityRecord{Hidden: hidden}
	record := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Identity{Identity: m}}
	all.Scan(func(e table.Entry[identityValue]) bool {
		m.Database, m.Name, m.Last = e.Database, e.Name, int64(e.Value)
		return w.record(record)
	})
}

func (w *snapshotWriter) hilos(all table.Frozen[packedHiLo]) {
	m := &raftlogv1.HiLoRecord{}
	record := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Hilo{Hilo: m}}
	all.Scan(func(e table.Entry[packedHiLo]) bool {
		c := e.Value.counter()
		m.Database, m.Tag, m.Max, m.Peak = e.Database, e.Name, c.Max, c.Peak
		m.Outstanding = m.Outstanding[:0]
		for _, o := range c.Outstanding {
			m.Outstanding = append(m.Outstanding, &raftlogv1.OutstandingRange{Low: o.Low, High: o.High, Token: o.Token, Holder: HolderOf(o)})
		}
		return w.record(record)
	})
}

func (w *snapshotWriter) claims(all table.Frozen[claimValue]) {
	m := &raftlogv1.ClaimRecord{}
	record := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Claim{Claim: m}}
	all.Scan(func(e table.Entry[claimValue]) bool {
		m.Database, m.Id, m.SteppedOver = e.Database, e.Name, bool(e.Value)
		return w.record(record)
	})
}

func (w *snapshotWriter) released(all table.Frozen[struct{}]) {
	all.Scan(func(e table.Entry[struct{}]) bool {
		m := &raftlogv1.ClaimRecord{Database: e.Database, Id: e.Name}
		return w.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Released{Released: m}})
	})
}

// series writes a series, then its numbers, then the keys that lost theirs.
func (w *snapshotWriter) series(s *frozen[series.Frozen]) {
	own, origin := s.is.Record()
	own.Database, own.Name = s.db, s.name
	w.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Series{Series: own}})
	numbers := &raftlogv1.SnapshotRecord_SeriesNumbers{}
	record := &raftlogv1.SnapshotRecord{Record: numbers}
	s.is.Pieces(func(p *raftlogv1.SeriesNumbersRecord) bool {
		p.Database, p.Name, p.Origin = s.db, s.name, origin
		numbers.SeriesNumbers = p
		return w.record(record)
	})
	s.is.Lost(func(lost *raftlogv1.SeriesLostRecord) bool {
		lost.Database, lost.Name = s.db, s.name
		return w.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_SeriesLost{SeriesLost: lost}})
	})
}

// writeRequests writes the request ids by principal, oldest first.
func (s *Snapshot) writeRequests(out *snapshotWriter) {
	m := &raftlogv1.RequestRecord{}
	record := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Request{Request: m}}
	shares := slices.SortedFunc(slices.Values(s.requests), func(a, b requestShare) int { return cmp.Compare(a.principal, b.principal) })
	for _, share := range shares {
		m.Share = &raftlogv1.RequestShare{Principal: []byte(share.principal), First: share.first, Floor: share.floor}
		share.each(func(e *requestEntry, result []byte) {
			m.Key, m.Fingerprint, m.Result, m.LogIndex = e.key[:], e.fingerprint, result, e.index
			out.record(record)
			m.Share = nil
		})
	}
}

// snapshotWriter writes frames and keeps the first error, after which it writes
// nothing more.
type snapshotWriter struct {
	w   *bufio.Writer
	buf []byte // of the frame being encoded
	crc uint32
	// each, if set, gets the records in place of w.
	each    func(*raftlogv1.SnapshotRecord) error
	written int64
	records uint64
	err     error
}

func (w *snapshotWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	w.crc = crc32c.Update(w.crc, b)
	n, err := w.w.Write(b)
	w.written += int64(n)
	w.err = err
}

// frame writes a message after its length.
func (w *snapshotWriter) frame(m proto.Message) {
	w.buf = protowire.AppendVarint(w.buf[:0], uint64(proto.Size(m)))
	buf, err := proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(w.buf, m)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.buf = buf
	w.write(buf)
}

// record writes a record. It returns false to stop.
func (w *snapshotWriter) record(m *raftlogv1.SnapshotRecord) bool {
	switch {
	case w.err != nil:
		return false
	case w.each != nil:
		w.err = w.each(m)
	default:
		w.frame(m)
	}
	w.records++
	return w.err == nil
}

func (w *snapshotWriter) end() (int64, error) {
	trailer := &raftlogv1.SnapshotTrailer{Records: w.records, Checksum: w.crc}
	w.write([]byte{0})
	w.frame(trailer)
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.written, w.err
}
