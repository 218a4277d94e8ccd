package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// recorder is a cluster that records its calls.
type recorder struct {
	grpc.ClientConnInterface
	requests []proto.Message
}

func (r *recorder) Invoke(_ context.Context, _ string, req, res any, _ ...grpc.CallOption) error {
	r.requests = append(r.requests, proto.CloneOf(req.(proto.Message)))
	if merged, ok := res.(*idnodev1.MergeCountersResponse); ok {
		merged.Created, merged.LogIndex = 1, uint64(len(r.requests))
	}
	return nil
}

// merges are the calls that change something, each as its databases with their claims, identities and HiLo counters.
func (r *recorder) merges() (all []string) {
	for _, m := range r.requests {
		b, ok := m.(*idnodev1.MergeCountersRequest)
		if !ok || b.GetDryRun() {
			continue
		}
		text := ""
		for _, d := range b.GetDatabases() {
			text += fmt.Sprintf("%s %d %d %d, ", d.GetDatabase(), len(d.GetClaims()), len(d.GetIdentities()), len(d.GetHilos()))
		}
		all = append(all, strings.TrimSuffix(text, ", "))
	}
	return all
}

// TestABatchIsOfManyDatabases, and has at most so many names. Claims come first.
func TestABatchIsOfManyDatabases(t *testing.T) {
	var r recorder
	var counters []counterfile.Counter
	for i := range mergeNames + 1 {
		counters = append(counters, counterfile.Counter{Database: "a", Kind: counterfile.Identity, Name: fmt.Sprint(i)})
	}
	counters = append(counters, counterfile.Counter{Database: "b", Kind: counterfile.HiLo, Name: "h", Value: 5},
		counterfile.Counter{Database: "A", Kind: counterfile.HiLo, Name: "h", Value: 5},
		counterfile.Counter{Kind: counterfile.HiLo, Name: "h"}, counterfile.Counter{Database: "Default", Kind: counterfile.HiLo, Name: "i"},
		counterfile.Counter{Database: "b", Kind: counterfile.Claim, Name: "c"})
	var told []int64
	m := Merger{Conn: &r, Merged: func(names int64) { told = append(told, names) }}
	total, err := m.Merge(t.Context(), counters)
	if err != nil || total.GetCreated() != 3 {
		t.Errorf("%v, %v", total, err)
	}
	want := []string{"b 1 0 0", "a 0 1000 0", "a 0 1 1, b 0 0 1, default 0 0 2"}
	if diff := cmp.Diff(want, r.merges()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{1, 1001, 1006}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestJudgedBeforeAnythingChanges: each dry run gets the growth of those before it, of each database once,
// and a repeated counter is judged once. If there is no room, nothing is merged.
func TestJudgedBeforeAnythingChanges(t *testing.T) {
	var counters []counterfile.Counter
	for range 2 {
		for i := range mergeNames + 1 {
			counters = append(counters, counterfile.Counter{Database: "a", Kind: counterfile.Identity, Name: fmt.Sprint(i)})
		}
	}
	counters = append(counters, counterfile.Counter{Database: "A", Kind: counterfile.Identity, Name: "7|"},
		counterfile.Counter{Database: "b", Kind: counterfile.HiLo, Name: "7"})
	full := errors.New("full")
	cluster := &grows{full: full}
	if _, err := (&Merger{Conn: cluster}).Merge(t.Context(), counters); !errors.Is(err, full) || len(cluster.merges()) != 0 {
		t.Errorf("%v; merged %q", err, cluster.merges())
	}
	for i, want := range []*idnodev1.MergeGrowth{{}, {Databases: 1, Identities: mergeNames}} {
		req := cluster.requests[i].(*idnodev1.MergeCountersRequest)
		if diff := cmp.Diff(want, req.GetAlready(), protocmp.Transform()); diff != "" || !req.GetDryRun() {
			t.Errorf("call %d (-want +got):\n%s", i, diff)
		}
		if here := req.GetDatabases()[0].GetAlready(); here.GetIdentities() != want.GetIdentities() {
			t.Errorf("call %d: in the database %v", i, here)
		}
	}
	if last := cluster.requests[1].(*idnodev1.MergeCountersRequest); len(cluster.requests) != 2 || len(last.GetDatabases()) != 2 ||
		len(last.GetDatabases()[0].GetIdentities()) != 1 {
		t.Errorf("%d calls, the last %v", len(cluster.requests), last)
	}
}

// grows is a cluster to which every name is new, and that is full at the second dry run.
type grows struct {
	recorder
	full error
}

func (g *grows) Invoke(ctx context.Context, method string, req, res any, opts ...grpc.CallOption) error {
	if _ = g.recorder.Invoke(ctx, method, req, res, opts...); len(g.requests) == 2 {
		return g.full
	}
	for _, d := range req.(*idnodev1.MergeCountersRequest).GetDatabases() {
		merged := res.(*idnodev1.MergeCountersResponse)
		merged.Growth = append(merged.Growth, &idnodev1.MergeGrowth{Databases: 1, Identities: int64(len(d.GetIdentities()))})
	}
	return nil
}

// TestABatchIsMeasuredAsTheServerDoes: it counts folded names, and folding makes some longer.
func TestABatchIsMeasuredAsTheServerDoes(t *testing.T) {
	var r recorder
	var counters []counterfile.Counter
	for i := range 60 {
		counters = append(counters, counterfile.Counter{Database: "a", Kind: counterfile.Identity, Name: fmt.Sprint(i, strings.Repeat("Ⱥ", 660))})
	}
	m := Merger{Conn: &r}
	if _, err := m.Merge(t.Context(), counters); err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, request := range r.requests {
		req := request.(*idnodev1.MergeCountersRequest)
		if req.GetDryRun() {
			continue
		}
		bytes, batch := len("a"), req.GetDatabases()[0].GetIdentities()
		for _, i := range batch {
			bytes += len(docid.Fold(i.GetName()))
		}
		if names += len(batch); bytes > mergeBytes {
			t.Errorf("a batch of %d bytes", bytes)
		}
	}
	if names != len(counters) {
		t.Errorf("%d names of %d", names, len(counters))
	}
}

// write writes a backup of these records.
func write(t *testing.T, records ...*raftlogv1.SnapshotRecord) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.backup")
	err := WriteFile(path, func(file *os.File) error {
		w, err := backup.NewWriter(file, &raftlogv1.BackupHeader{ClusterId: bytes.Repeat([]byte{7}, 16), LogIndex: 42, NodeTag: "A"})
		for _, r := range records {
			err = errors.Join(err, w.Record(r))
		}
		return errors.Join(err, w.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// open writes a backup of these records and opens it.
func open(t *testing.T, records ...*raftlogv1.SnapshotRecord) *Backup {
	t.Helper()
	b, err := Open(write(t, records...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// aBackup has one of each kind of record that is restored.
func aBackup(t *testing.T) *Backup {
	t.Helper()
	return open(
		t,
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Setting{Setting: &raftlogv1.SettingRecord{Key: "max-claims", Value: 9}}},
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Floor{Floor: &raftlogv1.FloorRecord{Names: 10}}},
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Member{Member: &raftlogv1.Member{Tag: "A", Id: []byte{0xaa}}}},
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Etag{Etag: &raftlogv1.EtagRecord{
			Node: []byte{0xaa}, Ceilings: []*raftlogv1.EtagCeiling{{Database: "shop", Ceiling: 50, Last: 70}},
		}}},
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Database{Database: "shop"}},
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Identity{Identity: &raftlogv1.IdentityRecord{
			Name: "i",
			Last: math.MaxInt64 - 1,
		}}},
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Hilo{Hilo: &raftlogv1.HiLoRecord{Tag: "h", Max: 32, Peak: 64}}},
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Claim{Claim: &raftlogv1.ClaimRecord{Id: "c"}}},
	)
}

func inShop(d *idnodev1.DatabaseMerge) *idnodev1.MergeCountersRequest {
	d.Database = "shop"
	return &idnodev1.MergeCountersRequest{Databases: []*idnodev1.DatabaseMerge{d}}
}

// TestRestore: floor and tags come first, then settings, claims, and counters above the
// distance. The floors of the operator are taken as they are.
func TestRestore(t *testing.T) {
	var r recorder
	restore := Restore{
		Backup: aBackup(t), Conn: &r, SkipAhead: 100, ShareTags: true, Settings: true,
		Floors: []counterfile.Counter{{Database: "shop", Kind: counterfile.Identity, Name: "i", Value: 3}},
	}
	if _, err := restore.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The limits are judged once they are the backup's; the floor is of a name that the backup has.
	judging := inShop(&idnodev1.DatabaseMerge{
		Identities: []*idnodev1.IdentityValue{{Name: "i", Value: math.MaxInt64 - 1}}, Hilos: []*idnodev1.HiLoValue{{Tag: "h", Max: 32, Peak: 64}},
		Claims: []string{"c"},
	})
	judging.DryRun, judging.Already = true, &idnodev1.MergeGrowth{}
	want := []proto.Message{
		&idnodev1.MergeClusterRequest{ShareTags: true, EtagFloor: 100, Floor: 110, Incomplete: true, Tags: []*idnodev1.GivenTag{
			{Tag: "A", Id: "aa", Etags: []*idnodev1.EtagCeiling{{Database: "shop", Ceiling: 170}}},
		}},
		&idnodev1.UpdateSettingRequest{Key: "max-claims", Value: proto.Int64(9)},
		judging,
		inShop(&idnodev1.DatabaseMerge{Claims: []string{"c"}}),
		inShop(&idnodev1.DatabaseMerge{
			Identities: []*idnodev1.IdentityValue{{Name: "i", Value: math.MaxInt64}}, Hilos: []*idnodev1.HiLoValue{{Tag: "h", Max: 132, Peak: 164}},
		}),
		inShop(&idnodev1.DatabaseMerge{Identities: []*idnodev1.IdentityValue{{Name: "i", Value: 3}}}),
	}
	if diff := cmp.Diff(want, r.requests, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRangesCountWhole: the numbers that the clients of a counter may take next, each a range of
// twice the size, up to the largest; of several counters the most.
func TestRangesCountWhole(t *testing.T) {
	counter := func(tag string, sizes ...int64) *raftlogv1.SnapshotRecord {
		h := &raftlogv1.HiLoRecord{Tag: tag}
		for _, size := range sizes {
			h.Outstanding = append(h.Outstanding, &raftlogv1.OutstandingRange{Low: h.Max + 1, High: h.Max + size})
			h.Max += size
		}
		return &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Hilo{Hilo: h}}
	}
	b := open(t, &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Database{Database: "shop"}},
		counter("few", 32), counter("many", 32, 64, 1<<20), counter("none"), counter("some", 1<<19))
	if b.RangesOf != "many" || b.NextRanges != 64+128+1<<20 {
		t.Errorf("%d of %s", b.NextRanges, b.RangesOf)
	}
}

// TestExport: an export is read back equal; RavenDB has no claims.
func TestExport(t *testing.T) {
	b := aBackup(t)
	identity := counterfile.Counter{Database: "shop", Kind: counterfile.Identity, Name: "i", Value: math.MaxInt64 - 1}
	hilo := counterfile.Counter{Database: "shop", Kind: counterfile.HiLo, Name: "h", Value: 32}
	claim := counterfile.Counter{Database: "shop", Kind: counterfile.Claim, Name: "c"}
	for _, tt := range []struct {
		form          Form
		database      string
		packed        bool
		written, left int
		want          []counterfile.Counter
	}{
		{CSV, "", false, 3, 0, []counterfile.Counter{identity, hilo, claim}},
		{CSV, "SHOP", false, 3, 0, []counterfile.Counter{identity, hilo, claim}},
		{CSV, "other", false, 0, 0, nil},
		{RavenDB, "shop", true, 2, 1, []counterfile.Counter{hilo, identity}},
		{RavenDB, "shop", false, 2, 1, []counterfile.Counter{hilo, identity}},
	} {
		path := filepath.Join(t.TempDir(), "export")
		err := WriteFile(path, func(file *os.File) error {
			written, left, err := b.Export(file, tt.form, tt.database, tt.packed)
			if written != tt.written || left != tt.left {
				t.Errorf("%+v: %d written, %d left out", tt, written, left)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadCounters(path, tt.form, "shop")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt, diff)
		}
	}
}

// TestAFileIsReplacedWhole, or not at all, and keeps its mode.
func TestAFileIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	if err := WriteFile(path, func(*os.File) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
		t.Errorf("%q %v", text, err)
	}
	if err := WriteFile(path, writeBytes([]byte("new"))); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if text, readErr := os.ReadFile(path); string(text) != "new" || readErr != nil || err != nil || info.Mode() != 0o640 {
		t.Errorf("%q %v %v %v", text, readErr, info.Mode(), err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("%v are left", left)
	}
}
