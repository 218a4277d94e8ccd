package harness

import (
	"os"
	"syscall"
	"testing"
)

// SmallDisk makes a directory a disk of its own, in memory, with the limits of these options of tmpfs.
// It skips the test where that is not allowed.
func SmallDisk(t *testing.T, dir, limits string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, limits+",mode=700"); err != nil {
		t.Skipf("no small disks here: mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
