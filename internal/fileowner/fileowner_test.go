//go:build unix

package fileowner

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRootLeavesNoFilesOfItsOwn in a data directory: the node could not start.
func TestRootLeavesNoFilesOfItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes files for others")
	}
	const user = 12345
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(dir, "snapshots"), 0o700); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "snapshots", "new")
	elsewhere := filepath.Join(filepath.Dir(dir), "elsewhere")
	linked := filepath.Join(dir, "linked")
	for _, file := range []string{made, elsewhere} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(elsewhere, linked); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	if err := KeepIn(dir); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]uint32{filepath.Dir(made): user, made: user, elsewhere: 0} {
		stat, err := statOf(path)
		if err != nil {
			t.Fatal(err)
		}
		if stat.Uid != want {
			t.Errorf("%s belongs to %d, want %d", path, stat.Uid, want)
		}
	}
	audit := filepath.Join(filepath.Dir(dir), "audit.log")
	if err := os.WriteFile(audit, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := KeepOf(audit, dir); err != nil {
		t.Fatal(err)
	}
	if stat, err := statOf(audit); err != nil || stat.Uid != user {
		t.Errorf("the audit log belongs to %v: %v", stat, err)
	}
}
