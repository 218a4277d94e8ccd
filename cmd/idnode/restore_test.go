package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// seriesBackup writes a backup with series of the databases default and shop, and pools.
func seriesBackup(t *testing.T, inDefault, inShop []string, pools ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.backup")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := backup.NewWriter(file, &raftlogv1.BackupHeader{ClusterId: bytes.Repeat([]byte{7}, 16), LogIndex: 42})
	if err != nil {
		t.Fatal(err)
	}
	records := []*raftlogv1.SnapshotRecord{
		{Record: &raftlogv1.SnapshotRecord_Database{Database: "default"}}, {Record: &raftlogv1.SnapshotRecord_Database{Database: "shop"}},
	}
	for database, names := range [][]string{inDefault, inShop} {
		for _, name := range names {
			records = append(records, &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Series{
				Series: &raftlogv1.SeriesRecord{Database: uint32(database), Name: name},
			}})
		}
	}
	for _, name := range pools {
		records = append(records, &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Pool{Pool: &raftlogv1.PoolRecord{
			Name: name, Window: 60_000, Layout: &raftlogv1.PoolLayout{UnitMilli: 1, TimeBits: 41, WorkerBits: 10, SequenceBits: 12},
		}}})
	}
	for _, r := range records {
		if err := w.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// restored answers as a cluster with the active series "busy", which an import suspends, and
// the suspended one "idle" in each database. It refuses the series "other".
func restored(t *testing.T, mayRead bool) *fakeNode {
	imported := false
	return newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		switch req := req.(type) {
		case *idnodev1.ListSeriesRequest:
			if !mayRead {
				return nil, failure(t, codes.PermissionDenied, "PERMISSION_DENIED", "no role gives it")
			}
			list := &idnodev1.ListSeriesResponse{Series: []*idnodev1.Series{
				{Name: "busy", Suspended: imported},
				{Name: "idle", Suspended: true},
				{Name: "other"},
			}}
			if imported {
				list.Series = append(list.Series, &idnodev1.Series{Name: "fresh", Suspended: true})
			}
			return list, nil
		case *idnodev1.ImportSeriesRequest:
			imported = true
			if strings.Contains(string(req.GetRecord()), "other") {
				return nil, failure(t, codes.FailedPrecondition, "SERIES_DIFFERS", "has another format")
			}
			return &idnodev1.ImportSeriesResponse{}, nil
		case *idnodev1.DefinePoolRequest:
			if req.GetName() == "forbidden" {
				return nil, failure(t, codes.PermissionDenied, "PERMISSION_DENIED", "no role gives it")
			}
			return &idnodev1.DefinePoolResponse{Layout: req.GetLayout(), Window: durationpb.New(time.Hour)}, nil
		case *idnodev1.GetStatusRequest:
			return &idnodev1.GetStatusResponse{ClusterId: "another"}, nil
		case *idnodev1.MergeClusterRequest:
			return &idnodev1.MergeClusterResponse{Floor: 9}, nil
		default:
			return &idnodev1.MergeCountersResponse{Raised: 4}, nil
		}
	})
}

// TestRestoreSaysWhatItSuspends: which series, and how many; those that were suspended before
// count for themselves.
func TestRestoreSaysWhatItSuspends(t *testing.T) {
	file := seriesBackup(t, []string{"busy", "idle"}, []string{"fresh", "busy"})
	node := restored(t, true)
	got := command(t, "restore", file, "--skip-ahead", "9", "--endpoint", node.addr)
	for _, want := range []string{
		`1 new series begin suspended: "fresh" of "shop".`, `2 active series are suspended if they lack something of the backup: "busy", "busy" of "shop".`,
		"Every series that is defined later begins suspended too.", "idnode series resume",
	} {
		if got.code != exitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%+v does not say %q", got, want)
		}
	}
}

// TestRestoreSaysWhatItSuspended: the same in its result. To restore again suspends nothing.
func TestRestoreSaysWhatItSuspended(t *testing.T) {
	file := seriesBackup(t, []string{"busy", "idle"}, []string{"fresh", "busy"})
	node := restored(t, true)
	for _, want := range []string{
		`suspended  3 series by this restore: "busy", "fresh" of "shop", "busy" of "shop"; look into the books, then 'idnode series resume NAME'; 1 before`,
		`suspended  0 series by this restore; 4 before`,
	} {
		got := command(t, "restore", file, "--skip-ahead", "9", "--yes", "--endpoint", node.addr)
		if got.code != exitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("%+v does not say %q", got, want)
		}
	}
	if got := command(t, "restore", seriesBackup(t, nil, nil), "--skip-ahead", "9", "--yes", "--endpoint",
		node.addr); strings.Contains(got.stdout, "suspended") {
		t.Errorf("a backup without series: %+v", got)
	}
	stranger := restored(t, false)
	if got := command(t, "restore", file, "--skip-ahead", "9", "--yes", "--endpoint", stranger.addr); got.code != exitOK ||
		!strings.Contains(got.stdout, "for who may read them") {
		t.Errorf("by somebody who must not read series: %+v", got)
	}
}

// TestRestoreSaysThatLeasesEnd before it ends them.
func TestRestoreSaysThatLeasesEnd(t *testing.T) {
	got := command(t, "restore", seriesBackup(t, nil, nil, "pool"), "--skip-ahead", "9", "--endpoint", restored(t, true).addr)
	if want := "The leases of 1 pools end"; got.code != exitUsage || !strings.Contains(got.stderr, want) {
		t.Errorf("%+v does not say %q", got, want)
	}
}

// TestRestoreNamesManySeries: the first ones by name, and how many there are.
func TestRestoreNamesManySeries(t *testing.T) {
	file := seriesBackup(t, []string{"a", "b", "c", "d", "e", "f", "g"}, nil)
	got := command(t, "restore", file, "--skip-ahead", "9", "--endpoint", restored(t, true).addr)
	if want := `7 new series begin suspended: "a", "b", "c", "d", "e" and 2 more.`; !strings.Contains(got.stderr, want) {
		t.Errorf("%+v does not say %q", got, want)
	}
}

// TestRestoreListsWhatWasRefused at the end, and fails, when all else was merged.
func TestRestoreListsWhatWasRefused(t *testing.T) {
	file := seriesBackup(t, []string{"busy"}, []string{"other"}, "pool")
	got := command(t, "restore", file, "--skip-ahead", "9", "--yes", "--endpoint", restored(t, true).addr)
	const why = "not merged: series \"other\" of \"shop\": SERIES_DIFFERS: has another format\n" +
		"not merged: pool \"pool\": its leases ended, and its window here stays 1h0m0s, not the backup's 1m0s\n" +
		"idnode: 2 were not merged, or not all of them; "
	if got.code != exitFailed || !strings.HasPrefix(got.stderr, why) || !strings.Contains(got.stdout, "unchanged") ||
		!strings.Contains(got.stdout, "pools     the leases of 1 ended") {
		t.Errorf("%+v", got)
	}
}

// TestAnErrorSaysWhatWasMerged before it, and what could not be.
func TestAnErrorSaysWhatWasMerged(t *testing.T) {
	file := seriesBackup(t, nil, []string{"other"}, "forbidden")
	got := command(t, "restore", file, "--skip-ahead", "9", "--yes", "--endpoint", restored(t, true).addr)
	const why = "not merged: series \"other\" of \"shop\": SERIES_DIFFERS: has another format\n" +
		"merged before the error: tags and floor, counters and claims, further values, series; to restore again goes on, and ends the same\n" +
		"idnode: PERMISSION_DENIED: "
	if got.code != exitFailed || !strings.HasPrefix(got.stderr, why) {
		t.Errorf("%+v", got)
	}
}
