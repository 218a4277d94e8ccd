package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestDevClearsFoldersOfTheDead: what a process that was killed left goes; what is not
// certainly such a folder of this user stays.
func TestDevClearsFoldersOfTheDead(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	hourAgo := time.Now().Add(-time.Hour)
	folder := func(name string, at time.Time) string {
		dir := filepath.Join(os.TempDir(), name)
		if err := os.MkdirAll(filepath.Join(dir, "A"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dead := folder(devFolder+"dead", hourAgo)
	alive, remove, err := makeDevFolder()
	if err != nil {
		t.Fatal(err)
	}
	folder(filepath.Base(alive), hourAgo)
	mine, link := folder("mine", hourAgo), filepath.Join(os.TempDir(), devFolder+"link")
	if err := os.Symlink(mine, link); err != nil {
		t.Fatal(err)
	}
	stays := []string{alive, mine, link, folder(devFolder+"being-made", time.Now())}
	if os.Geteuid() == 0 {
		other := folder(devFolder+"other", hourAgo)
		if err := os.Chown(other, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		stays = append(stays, other)
	}
	clearDevFolders()
	if _, err := os.Lstat(dead); !os.IsNotExist(err) {
		t.Errorf("%s: %v", dead, err)
	}
	for _, dir := range stays {
		if _, err := os.Stat(filepath.Join(dir, "A")); err != nil {
			t.Error(err)
		}
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(alive); !os.IsNotExist(err) {
		t.Errorf("%s, after its process: %v", alive, err)
	}
}
