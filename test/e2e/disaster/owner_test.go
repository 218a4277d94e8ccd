package disaster

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// anotherUser is not this one.
const anotherUser = 12345

// anotherUsers gives a directory to another user, if this one may.
func anotherUsers(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("only root makes files for others: their owners are not looked at")
		return
	}
	walk(t, dir, func(path string, _ fs.FileInfo) error { return os.Lchown(path, anotherUser, anotherUser) })
}

// allAnotherUsers: what root's command made in that user's directory, or made for his
// node, is his. His node could not open it otherwise.
func allAnotherUsers(t *testing.T, places ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for _, place := range places {
		walk(t, place, func(path string, info fs.FileInfo) error {
			if stat := info.Sys().(*syscall.Stat_t); stat.Uid != anotherUser || stat.Gid != anotherUser {
				t.Errorf("%s belongs to %d:%d", path, stat.Uid, stat.Gid)
			}
			return nil
		})
	}
}

func walk(t *testing.T, dir string, each func(path string, info fs.FileInfo) error) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info fs.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return each(path, info)
	})
	if err != nil {
		t.Fatal(err)
	}
}
