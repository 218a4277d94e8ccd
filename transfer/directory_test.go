package transfer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/backup"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// backupAt is a backup of a cluster of ids 07…, or another byte, at a time and index.
func backupAt(t *testing.T, cluster byte, index uint64, at time.Time) []byte {
	t.Helper()
	return backupWith(t, &raftlogv1.BackupHeader{
		ClusterId: bytes.Repeat([]byte{cluster}, 16), LogIndex: index, NodeTag: "A",
		TimeUnixNano: at.UnixNano(),
	})
}

func backupWith(t *testing.T, header *raftlogv1.BackupHeader) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := backup.NewWriter(&file, header)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*raftlogv1.SnapshotRecord{
		{Record: &raftlogv1.SnapshotRecord_Database{Database: "default"}},
		{Record: &raftlogv1.SnapshotRecord_Identity{Identity: &raftlogv1.IdentityRecord{Name: "invoices", Last: 7}}},
	} {
		if err := w.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// writeBytes writes a file of these bytes.
func writeBytes(data []byte) Write {
	return func(file *os.File) error {
		_, err := file.Write(data)
		return err
	}
}

// addAndDelete adds a backup and deletes older ones, as a timer does.
func addAndDelete(dir string, keep int, write Write) error {
	path, info, err := AddBackup(dir, write)
	if err != nil {
		return err
	}
	return DeleteOlder(path, info.GetClusterId(), keep)
}

// names returns the names of the files in a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestBackupKeepsTheNewest: the newest by time stay, also when the log index fell, as after all
// nodes' disks were set back, and so do files that are not backups of this cluster; a backup can be
// read by its owner only.
func TestBackupKeepsTheNewest(t *testing.T) {
	dir := t.TempDir()
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	sevens, eights := strings.Repeat("07", 16), strings.Repeat("08", 16)
	foreign := []string{"20261101T000000Z-3-" + sevens + ".backup.old", "notes.txt"}
	for _, name := range foreign {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		cluster byte
		index   uint64
		at      time.Time
	}{
		{7, 1000, noon.Add(-2 * time.Hour)},
		{7, 1001, noon.Add(-time.Hour)},
		{7, 100, noon},
		{8, 1, noon}, // The cluster began again.
		{7, 101, noon.Add(time.Hour)},
		{7, 99, noon.Add(time.Hour)}, // A node that lags, asked with --stale.
		{7, 102, noon.Add(2 * time.Hour)},
	} {
		if err := addAndDelete(dir, 2, writeBytes(backupAt(t, tt.cluster, tt.index, tt.at))); err != nil {
			t.Fatalf("index %d: %v", tt.index, err)
		}
	}
	want := []string{
		foreign[0],
		"20261122T120000Z-1-" + eights + ".backup",
		"20261122T130000Z-101-" + sevens + ".backup",
		"20261122T140000Z-102-" + sevens + ".backup",
		foreign[1],
	}
	if diff := cmp.Diff(want, names(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range want[1:4] {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if _, err := Open(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestBackupsAtOnce: a run deletes nothing that is newer than its own backup, and none
// fails because another has deleted a file first.
func TestBackupsAtOnce(t *testing.T) {
	dir := t.TempDir()
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var runs sync.WaitGroup
	for i := range 12 {
		data := backupAt(t, 7, uint64(i), noon.Add(time.Duration(i)*time.Minute))
		runs.Go(func() {
			if err := addAndDelete(dir, 1, writeBytes(data)); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	runs.Wait()
	// The one that ends last may be an older one, which stays until the next run.
	newest := "20261122T121100Z-11-" + strings.Repeat("07", 16) + ".backup"
	if left := names(t, dir); !slices.Contains(left, newest) {
		t.Errorf("only %v are left", left)
	}
	if err := addAndDelete(dir, 1, writeBytes(backupAt(t, 7, 3, noon))); err != nil {
		t.Error(err)
	}
	if left := names(t, dir); !slices.Contains(left, newest) {
		t.Errorf("a late run left only %v", left)
	}
}

// TestFailedBackupDeletesNothing: older backups stay, and the draft is removed. Drafts of processes
// that were killed go with the next backup.
func TestFailedBackupDeletesNothing(t *testing.T) {
	dir := t.TempDir()
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	whole := backupAt(t, 7, 5, noon)
	for range 2 {
		if err := addAndDelete(dir, 1, writeBytes(whole)); err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, dir)
	for what, write := range map[string]Write{
		"cut off":   writeBytes(backupAt(t, 7, 6, noon)[:100]),
		"no answer": func(*os.File) error { return errors.New("no answer") },
	} {
		if err := addAndDelete(dir, 1, write); err == nil {
			t.Errorf("%s: no error", what)
		}
		if diff := cmp.Diff(before, names(t, dir)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", what, diff)
		}
	}
	if len(before) != 1 {
		t.Errorf("there were %v", before)
	}
	for name, age := range map[string]time.Duration{"idnode.part-1": time.Hour, "idnode.part-2": 2 * staleDraft} {
		path, at := filepath.Join(dir, name), time.Now().Add(-age)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := addAndDelete(dir, 1, writeBytes(whole)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(before, "idnode.part-1"), names(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
