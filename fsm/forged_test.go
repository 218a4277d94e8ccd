package fsm

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/internal/dirfile"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// forge writes a snapshot with right checksums, so that its defect must be found elsewhere.
func forge(header *raftlogv1.SnapshotHeader, records ...*raftlogv1.SnapshotRecord) []byte {
	var b bytes.Buffer
	w, err := snapshots.NewWriter(&b, header)
	for _, r := range records {
		err = errors.Join(err, w.Record(r))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func TestForgedSnapshotsAreRefused(t *testing.T) {
	head := func(change func(*raftlogv1.SnapshotHeader)) *raftlogv1.SnapshotHeader {
		h := &raftlogv1.SnapshotHeader{Format: 1, LogFormat: 1, FoldVersion: 1}
		change(h)
		return h
	}
	plain := head(func(*raftlogv1.SnapshotHeader) {})
	if err := New(Config{}).Restore(bytes.NewReader(forge(plain))); err != nil {
		t.Fatalf("nothing is wrong with this one: %v", err)
	}
	membership := func(index uint64) *raftlogv1.SnapshotRecord {
		return &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_MembershipIndex{MembershipIndex: index}}
	}
	database := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Database{Database: "db"}}
	identity := asRecord(&raftlogv1.IdentityRecord{Name: "users", Last: 3})
	hidden := asRecord(&raftlogv1.IdentityRecord{Name: "users", Last: 3, Hidden: true})
	claim := asRecord(&raftlogv1.ClaimRecord{Id: "x"})
	tag := asRecord(&raftlogv1.HiLoRecord{Tag: "x"})
	long := asRecord(&raftlogv1.HiLoRecord{Tag: string(bytes.Repeat([]byte("x"), 70_000))})
	ranges := asRecord(&raftlogv1.HiLoRecord{Tag: "x", Outstanding: make([]*raftlogv1.OutstandingRange, 5)})
	member := asRecord(testMember("A"))
	session := asRecord(&raftlogv1.SessionRecord{Origin: nodeNamed("node A"), Session: 5})
	other := asRecord(&raftlogv1.SessionRecord{Origin: nodeNamed("node A"), Session: 6})
	ahead := asRecord(&raftlogv1.SessionRecord{Origin: nodeNamed("node A"), Session: 5, Results: []*raftlogv1.SessionResult{{Sequence: 65}}})
	request := asRecord(&raftlogv1.RequestRecord{Key: make([]byte, 16), Share: &raftlogv1.RequestShare{}})
	next := asRecord(&raftlogv1.RequestRecord{Key: bytes.Repeat([]byte{1}, 16), Share: &raftlogv1.RequestShare{}})
	setting := asRecord(&raftlogv1.SettingRecord{Key: "max-claims", Value: 7})
	roles := asRecord(&raftlogv1.RolesRecord{LogIndex: 3, Table: encodedRoles(t)})
	etags := asRecord(&raftlogv1.EtagRecord{Node: nodeNamed("node A"), Start: 1})
	unknown := &raftlogv1.IdentityRecord{Name: "users"}
	unknown.ProtoReflect().SetUnknown([]byte{0xfa, 0x06, 0}) // Field 111.
	for name, data := range map[string][]byte{
		"wrong hash":               forge(head(func(h *raftlogv1.SnapshotHeader) { h.StateHash = 1 })),
		"format zero":              forge(head(func(h *raftlogv1.SnapshotHeader) { h.Format = 0 })),
		"fold version zero":        forge(head(func(h *raftlogv1.SnapshotHeader) { h.FoldVersion = 0 })),
		"log format zero":          forge(head(func(h *raftlogv1.SnapshotHeader) { h.LogFormat = 0 })),
		"membership never changed": forge(plain, membership(0)),
		"membership twice": forge(head(func(h *raftlogv1.SnapshotHeader) { h.StateHash = membershipHash(7) }),
			membership(7), membership(7)),
		"short cluster id":        forge(head(func(h *raftlogv1.SnapshotHeader) { h.ClusterId = []byte("x") })),
		"empty record":            forge(plain, &raftlogv1.SnapshotRecord{}),
		"identity without db":     forge(plain, identity),
		"database twice":          forge(plain, database, database),
		"identity twice":          forge(plain, database, identity, identity),
		"identity hidden and not": forge(plain, database, hidden, identity),
		"identity without name":   forge(plain, database, asRecord(&raftlogv1.IdentityRecord{})),
		"claim twice":             forge(plain, database, claim, claim),
		"tag twice":               forge(plain, database, tag, tag),
		"long tag":                forge(plain, database, long),
		"many ranges":             forge(plain, database, ranges),
		"member twice":            forge(plain, member, member),
		"tag of two members":      forge(plain, member, asRecord(&raftlogv1.Member{Id: nodeNamed("x"), Tag: "A"})),
		"member without id":       forge(plain, asRecord(&raftlogv1.Member{Tag: "A"})),
		"session of nobody":       forge(plain, session),
		"two sessions":            forge(plain, member, session, other),
		"session far ahead":       forge(plain, member, ahead),
		"request twice":           forge(plain, request, request),
		"request of nobody":       forge(plain, asRecord(&raftlogv1.RequestRecord{Key: make([]byte, 16)})),
		"requests of one twice":   forge(plain, request, next),
		"short request key":       forge(plain, asRecord(&raftlogv1.RequestRecord{Key: []byte("x")})),
		"long request key":        forge(plain, asRecord(&raftlogv1.RequestRecord{Key: make([]byte, 17)})),
		"setting twice":           forge(plain, setting, setting),
		"unknown setting":         forge(plain, asRecord(&raftlogv1.SettingRecord{Key: "x"})),
		"setting out of range":    forge(plain, asRecord(&raftlogv1.SettingRecord{Key: "max-claims", Value: -1})),
		"roles twice":             forge(plain, roles, roles),
		"roles never set":         forge(plain, asRecord(&raftlogv1.RolesRecord{Table: encodedRoles(t)})),
		"no roles":                forge(plain, asRecord(&raftlogv1.RolesRecord{LogIndex: 3})),
		"roles that are none":     forge(plain, asRecord(&raftlogv1.RolesRecord{LogIndex: 3, Table: []byte("x")})),
		"etags of nobody":         forge(plain, etags),
		"etags twice":             forge(plain, member, etags, etags),
		"not a snapshot":          []byte("something else altogether"),
	} {
		t.Run(name, func(t *testing.T) {
			if err := New(Config{}).Restore(bytes.NewReader(data)); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("got %v", err)
			}
		})
	}
	// A newer release wrote these, though no format says so. Who learns of damage empties the directory.
	for name, data := range map[string][]byte{
		"unknown field in the header": forge(head(func(h *raftlogv1.SnapshotHeader) {
			h.ProtoReflect().SetUnknown(unknown.ProtoReflect().GetUnknown())
		})),
		"unknown field in a record": forge(plain, database, asRecord(unknown)),
	} {
		if err := New(Config{}).Restore(bytes.NewReader(data)); !errors.Is(err, dirfile.ErrOtherVersion) || errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestARangeAboveMaxIsNotRestored: it could not be packed, and would not be read again.
func TestARangeAboveMaxIsNotRestored(t *testing.T) {
	for _, r := range []*raftlogv1.OutstandingRange{{Low: 6, High: 7}, {Low: math.MinInt64, High: math.MinInt64}} {
		c := newContents()
		if err := c.databases.restore("db"); err != nil {
			t.Fatal(err)
		}
		err := c.hilos.restore(&raftlogv1.HiLoRecord{Tag: "x", Max: 5, Outstanding: []*raftlogv1.OutstandingRange{r}})
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v: %v", r, err)
		}
	}
}

// TestASnapshotThatIsTooNewIsNotDamaged: an operator who learns of damage empties the directory. A
// newer release extends the header's fields or the records; either way the log format shows first
// that the snapshot is too new.
func TestASnapshotThatIsTooNewIsNotDamaged(t *testing.T) {
	newer := &raftlogv1.SnapshotHeader{Format: 1, LogFormat: raftlog.FormatVersion + 1, FoldVersion: 1}
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 100, protowire.VarintType), 1)
	added := proto.CloneOf(newer)
	added.ProtoReflect().SetUnknown(unknown)
	record := &raftlogv1.SnapshotRecord{}
	record.ProtoReflect().SetUnknown(unknown)
	for name, data := range map[string][]byte{
		"a field of the header": forge(added),
		"a kind of record":      forge(newer, record),
	} {
		t.Run(name, func(t *testing.T) {
			err := New(Config{}).Restore(bytes.NewReader(data))
			var tooNew *raftlog.UnknownFormatError
			if !errors.As(err, &tooNew) || errors.Is(err, ErrCorrupt) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// membershipHash is that of a state of nothing but the index of a change of the membership.
func membershipHash(index uint64) uint64 {
	c := newContents()
	c.members.index = index
	return c.hash()
}

// asRecord wraps a piece of state.
func asRecord(m proto.Message) *raftlogv1.SnapshotRecord {
	r := &raftlogv1.SnapshotRecord{}
	switch m := m.(type) {
	case *raftlogv1.IdentityRecord:
		r.Record = &raftlogv1.SnapshotRecord_Identity{Identity: m}
	case *raftlogv1.HiLoRecord:
		r.Record = &raftlogv1.SnapshotRecord_Hilo{Hilo: m}
	case *raftlogv1.ClaimRecord:
		r.Record = &raftlogv1.SnapshotRecord_Claim{Claim: m}
	case *raftlogv1.Member:
		r.Record = &raftlogv1.SnapshotRecord_Member{Member: m}
	case *raftlogv1.RequestRecord:
		r.Record = &raftlogv1.SnapshotRecord_Request{Request: m}
	case *raftlogv1.SessionRecord:
		r.Record = &raftlogv1.SnapshotRecord_Session{Session: m}
	case *raftlogv1.SettingRecord:
		r.Record = &raftlogv1.SnapshotRecord_Setting{Setting: m}
	case *raftlogv1.RolesRecord:
		r.Record = &raftlogv1.SnapshotRecord_Roles{Roles: m}
	case *raftlogv1.EtagRecord:
		r.Record = &raftlogv1.SnapshotRecord_Etag{Etag: m}
	}
	return r
}

func TestSnapshotsOfALaterReleaseAreRefused(t *testing.T) {
	for name, h := range map[string]*raftlogv1.SnapshotHeader{
		"format":       {Format: 2, LogFormat: 1, FoldVersion: 1},
		"log format":   {Format: 1, LogFormat: raftlog.FormatVersion + 1, FoldVersion: 1},
		"fold version": {Format: 1, LogFormat: 1, FoldVersion: 2},
	} {
		var unknown *raftlog.UnknownFormatError
		if err := New(Config{}).Restore(bytes.NewReader(forge(h))); !errors.As(err, &unknown) || errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s: got %v", name, err)
		}
	}
	const later = raftlog.FormatVersion + 1
	h := &raftlogv1.SnapshotHeader{Format: 1, LogFormat: later, FoldVersion: 1, StateHash: hashNumber(recordFormat, later, firstFormat)}
	if err := New(Config{MaxFormat: later}).Restore(bytes.NewReader(forge(h))); err != nil {
		t.Fatal(err)
	}
}

func TestASnapshotOfAnotherClusterIsRefused(t *testing.T) {
	l := newFormedLog(t)
	id := bytes.Repeat([]byte{9}, clusterIDBytes)
	h := &raftlogv1.SnapshotHeader{Format: 1, LogFormat: 1, FoldVersion: 1, ClusterId: id, StateHash: hashCluster(id)}
	l.mustNotChange(func() {
		if err := l.state.Restore(bytes.NewReader(forge(h))); !errors.Is(err, ErrWrongCluster) {
			t.Fatalf("got %v", err)
		}
	})
}

// encodedRoles is a table with one role.
func encodedRoles(t *testing.T) []byte {
	t.Helper()
	data, err := rights.Encode(&rights.Table{Roles: []rights.Role{
		{Name: "ops", Principals: []string{"ops"}, Grants: []rights.Grant{{Database: rights.Any, Rights: rights.Cluster}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}
