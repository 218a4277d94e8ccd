package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// diskBytes is the size of a node's own disk.
const diskBytes = 192 << 20

// Disk is a file system of a node's own, which can lose power: what was not synced
// is then gone, as it is when a machine's plug is pulled.
type Disk struct {
	image, dir string
	device     string
	// losses is how often it has lost power.
	losses int
}

// OwnDisks gives each node, which must not run yet, a disk of its own. It skips the
// test where that is not allowed, or the disk does not forget.
func (c *Cluster) OwnDisks(t testing.TB) {
	t.Helper()
	for _, n := range c.Nodes {
		n.disk = newDisk(t, n.DataDir)
	}
}

func newDisk(t testing.TB, dir string) *Disk {
	t.Helper()
	d := &Disk{image: dir + ".disk", dir: dir}
	if err := errors.Join(os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, diskBytes), os.MkdirAll(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	// Without room kept for the root user, and with a journal that is not flushed by
	// itself while the test looks.
	if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", "-F", d.image).CombinedOutput(); err != nil {
		t.Skipf("no disks that lose power here: mkfs.ext4: %v %s", err, out)
	}
	if err := d.mount(); err != nil {
		t.Skipf("no disks that lose power here: %v", err)
	}
	t.Cleanup(func() {
		if err := d.unmount(); err != nil {
			t.Error(err)
		}
	})
	if err := os.Remove(filepath.Join(dir, "lost+found")); err != nil {
		t.Fatal(err)
	}
	return d
}

// mount makes the image the file system of the folder, by a device of its own each
// time: a process that copied the table of mounts keeps the old one alive.
func (d *Disk) mount() error {
	out, err := exec.Command("losetup", "--find", "--show", d.image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("losetup: %w %s", err, out)
	}
	d.device = strings.TrimSpace(string(out))
	if err := syscall.Mount(d.device, d.dir, "ext4", syscall.MS_NOATIME, "commit=300"); err != nil {
		return fmt.Errorf("mount: %w", errors.Join(err, d.detach()))
	}
	return nil
}

func (d *Disk) unmount() error { return errors.Join(syscall.Unmount(d.dir, 0), d.detach()) }

// detach gives the device back as soon as it is unused.
func (d *Disk) detach() error {
	if out, err := exec.Command("losetup", "--detach", d.device).CombinedOutput(); err != nil {
		return fmt.Errorf("losetup: %w %s", err, out)
	}
	return nil
}

// LosePower takes the power from the nodes, which have disks of their own, at one
// moment, and gives it back: their processes have ended then, and their disks hold
// what was synced. It returns how many of the disks have lost what was written right
// before and never synced; the kernel may just have written it by itself.
func LosePower(t testing.TB, nodes ...*Node) (forgot int) {
	t.Helper()
	for _, n := range nodes {
		if err := os.WriteFile(n.disk.canary(), []byte(canary), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		if err := n.disk.stop(); err != nil {
			t.Skipf("no disks that lose power here: %v", err)
		}
	}
	for _, n := range nodes {
		n.Process.Kill()
	}
	for _, n := range nodes {
		if err := n.disk.unmount(); err != nil {
			t.Fatal(err)
		}
		if err := n.disk.mount(); err != nil {
			t.Fatal(err)
		}
		// The name may be there, if the node synced something meanwhile.
		if content, err := os.ReadFile(n.disk.canary()); err != nil || string(content) != canary {
			forgot++
		}
		// ext4 writes at once what takes the place of an old content.
		n.disk.losses++
	}
	return forgot
}

// canary is in a file that is never synced.
const canary = "not synced"

func (d *Disk) canary() string { return filepath.Join(d.dir, fmt.Sprintf("canary-%d", d.losses)) }

// stop makes the file system take and give nothing any more, and forget what is not
// in its journal: the kernel's own means to test what a crash leaves.
func (d *Disk) stop() error {
	const (
		shutdown     = 0x8004587d // EXT4_IOC_SHUTDOWN
		withoutFlush = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
	)
	dir, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	how := uint32(withoutFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), shutdown, uintptr(unsafe.Pointer(&how))); errno != 0 {
		return fmt.Errorf("stop the file system: %w", errno)
	}
	return nil
}
