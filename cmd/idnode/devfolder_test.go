package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDevClearsFoldersOfTheDead: what a process that was killed left goes; what is not
// certainly such a folder of this user stays.
func TestDevClearsFoldersOfTheDead(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder := func(name string) string {
		dir := filepath.Join(os.TempDir(), name)
		if err := os.MkdirAll(filepath.Join(dir, "A"), 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	left := func(name, lock string) string {
		dir := folder(name)
		if err := os.WriteFile(filepath.Join(dir, devLock), []byte(lock), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dead := left(devFolder+"dead", "4711\n")
	alive := folder(devFolder + "alive")
	lock, err := lockDevFolder(alive)
	if err != nil {
		t.Fatal(err)
	}
	mine, link := left("mine", "4711\n"), filepath.Join(os.TempDir(), devFolder+"link")
	if err := os.Symlink(mine, link); err != nil {
		t.Fatal(err)
	}
	stays := []string{alive, mine, link, left(devFolder+"being-made", ""), folder(devFolder + "of-an-older-program")}
	if os.Geteuid() == 0 {
		other := left(devFolder+"other", "4711\n")
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
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	clearDevFolders()
	if _, err := os.Lstat(alive); !os.IsNotExist(err) {
		t.Errorf("%s, after its process: %v", alive, err)
	}
}
