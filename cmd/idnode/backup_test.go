package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
