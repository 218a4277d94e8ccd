package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// backupAt is a backup of a cluster of ids 07…, or another byte, at a time and index.
func backupAt(t *testing.T, cluster byte, index uint64, at time.Time) []byte {
	t.Helper()
	return backupWith(t, &raftlogv1.BackupHeader{ClusterId: bytes.Repeat([]byte{cluster}, 16), LogIndex: index, NodeTag: "A", TimeUnixNano: at.UnixNano()})
}

// names returns what is in a directory.
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

// TestBackupKeepsTheNewest: the newest by time stay, also when the log index fell, as when
// all nodes' disks were set back, and so does what is no backup of this cluster; a backup
// can be read by its owner only.
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
		got := command(t, "backup", dir, "--keep", "2", "--endpoint", serveBackup(t, backupAt(t, tt.cluster, tt.index, tt.at)))
		if got.code != exitOK || !strings.Contains(got.stdout, dir) {
			t.Fatalf("index %d: %+v", tt.index, got)
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
		if got := command(t, "backup", "inspect", filepath.Join(dir, name)); got.code != exitOK {
			t.Errorf("%s: %+v", name, got)
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
		endpoint := serveBackup(t, backupAt(t, 7, uint64(i), noon.Add(time.Duration(i)*time.Minute)))
		runs.Go(func() {
			if got := command(t, "backup", dir, "--keep", "1", "--endpoint", endpoint); got.code != exitOK {
				t.Errorf("%d: %+v", i, got)
			}
		})
	}
	runs.Wait()
	// The one that ends last may be an older one, which stays until the next run.
	newest := "20261122T121100Z-11-" + strings.Repeat("07", 16) + ".backup"
	if left := names(t, dir); !slices.Contains(left, newest) {
		t.Errorf("only %v are left", left)
	}
	older := serveBackup(t, backupAt(t, 7, 3, noon))
	if got := command(t, "backup", dir, "--keep", "1", "--endpoint", older); got.code != exitOK {
		t.Errorf("%+v", got)
	}
	if left := names(t, dir); !slices.Contains(left, newest) {
		t.Errorf("a late run left only %v", left)
	}
}

// TestFailedBackupDeletesNothing: the older ones stay, and nothing is left of the draft.
// Drafts of processes that were killed go with the next backup.
func TestFailedBackupDeletesNothing(t *testing.T) {
	dir := t.TempDir()
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	whole := backupAt(t, 7, 5, noon)
	for range 2 {
		if got := command(t, "backup", dir, "--keep", "1", "--endpoint", serveBackup(t, whole)); got.code != exitOK {
			t.Fatalf("%+v", got)
		}
	}
	before := names(t, dir)
	for what, endpoint := range map[string]string{
		"cut off":   serveBackup(t, backupAt(t, 7, 6, noon)[:100]),
		"no answer": unusedAddr(t),
	} {
		if got := command(t, "backup", dir, "--keep", "1", "--endpoint", endpoint); got.code == exitOK || got.stdout != "" {
			t.Errorf("%s: %+v", what, got)
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
	if got := command(t, "backup", dir, "--keep", "1", "--endpoint", serveBackup(t, whole)); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff(append(before, "idnode.part-1"), names(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBackupDirectoryIsNeeded: --keep takes a directory that is there, and a number.
func TestBackupDirectoryIsNeeded(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{filepath.Join(dir, "missing"), "--keep", "3"},
		{file, "--keep", "3"},
		{standardOutput, "--keep", "3"},
		{dir, "--keep", "0"},
		{dir, "--keep", "-5"},
	} {
		got := command(t, append([]string{"backup", "--yes", "--endpoint", serveBackup(t, aBackup(t))}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, "--keep") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file is %q: %v", text, err)
	}
}
