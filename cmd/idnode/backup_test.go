package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBackupKeepsTheNewest: --keep prints where the backup is, and deletes older ones of
// its cluster only once it is whole. It asks nothing.
func TestBackupKeepsTheNewest(t *testing.T) {
	dir, whole := t.TempDir(), aBackup(t)
	cluster := strings.Repeat("07", 16)
	older, other := "19691231T000000Z-41-"+cluster+".backup", "19691231T000000Z-41-"+strings.Repeat("08", 16)+".backup"
	for _, name := range []string{older, other} {
		if err := os.WriteFile(filepath.Join(dir, name), whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := command(t, "backup", dir, "--keep", "1", "--endpoint", serveBackup(t, whole[:100]))
	if left, _ := fs.Glob(os.DirFS(dir), "*"); got.code != exitFailed || got.stdout != "" || !slices.Equal(left, []string{older, other}) {
		t.Errorf("a backup that was cut off: %+v, left %q", got, left)
	}
	added := "19700101T000000Z-42-" + cluster + ".backup"
	got = command(t, "backup", dir, "--keep", "1", "--endpoint", serveBackup(t, whole))
	if left, _ := fs.Glob(os.DirFS(dir), "*"); got.code != exitOK || !strings.Contains(got.stdout, filepath.Join(dir, added)) ||
		!slices.Equal(left, []string{other, added}) {
		t.Errorf("%+v, left %q", got, left)
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

// TestInspectListsPools, where there are some.
func TestInspectListsPools(t *testing.T) {
	file := seriesBackup(t, nil, nil, "carts")
	got := command(t, "backup", "inspect", file)
	const want = "DATABASE  POOL   IN-USE  WORKERS  WINDOW  LAYOUT\n" +
		"default   carts  0       1024     1m0s    41 bits of 1ms since 1970-01-01T00:00:00Z, 10 of the worker, 12 of the sequence\n"
	if got.code != exitOK || !strings.HasSuffix(got.stdout, want) {
		t.Errorf("%+v, want %q", got, want)
	}
	if got := command(t, "backup", "inspect", file, "-o", "json"); !strings.Contains(got.stdout, `"pools":[{"database":"default","name":"carts"`) {
		t.Errorf("%+v", got)
	}
	if got := command(t, "backup", "inspect", seriesBackup(t, nil, nil)); strings.Contains(got.stdout, "POOL") {
		t.Errorf("without pools: %+v", got)
	}
}
