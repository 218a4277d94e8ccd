package matrix

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	// smallDisk is the size of each node's disk, and lowMark what must be free of it.
	smallDisk = 64 << 20
	lowMark   = 8 << 20

	storageFull = "STORAGE_FULL"
	// promptly is how long a refusal for want of space takes at most.
	promptly = 500 * time.Millisecond
)

// TestF13DiskFull fills the disks of a follower, of the leader, of two and of all
// nodes to the low mark, and frees them: where a quorum of disks has space, service
// goes on, under a leader with space; else calls are refused for certain, and answered
// again soon after.
func TestF13DiskFull(t *testing.T) {
	tier.Long(t)
	c := harness.NewCluster(t, harness.Config{Flags: []string{"--storage-low-mark", fmt.Sprint(lowMark)}})
	for _, n := range c.Nodes {
		harness.SmallDisk(t, n.DataDir, fmt.Sprintf("size=%d", smallDisk))
	}
	for _, n := range c.Nodes {
		n.Start(t)
	}
	c.WaitReady(t)
	r := record(t, c, deadline)
	for range r.cycles(t, 1, 50) {
		for count := range len(c.Nodes) + 1 {
			leader := c.Leader(t)
			nodes := append(c.Others(leader), leader)[:count]
			if count == 0 {
				nodes = []*harness.Node{leader}
			}
			r.traffic.Thick(t)
			for _, n := range nodes {
				fill(t, n.DataDir)
			}
			switch count {
			case 0:
				awaitOther(t, c, leader)
				r.traffic.Probe(t, leader)
			case 1:
				r.traffic.Probe(t, leader)
			default:
				awaitRefusals(t, r, storageFull)
			}
			for _, n := range nodes {
				if err := os.Remove(filler(n.DataDir)); err != nil {
					t.Fatal(err)
				}
			}
			if took := r.traffic.Probe(t, leader); took > within(10*time.Second) {
				t.Errorf("service came back %s after the disks were freed", took)
			}
		}
	}
	for _, n := range c.Nodes {
		if starts := strings.Count(n.Process.Output(), "msg=ready"); starts != 1 {
			t.Errorf("node %s was ready %d times, want once: full disks end no node", n.Tag, starts)
		}
	}
	if took := r.SlowestRefusal(storageFull); took > within(promptly) {
		t.Errorf("a refusal for want of space took %s, want at most %s", took, within(promptly))
	}
	r.withoutAByte(t)
	r.ends(t)
}

// withoutAByte fills the disk of one follower to its last byte: it goes on, or ends
// because of that and in words, and is back soon after there is space again.
func (r *row) withoutAByte(t *testing.T) {
	t.Helper()
	n := r.c.Others(r.c.Leader(t))[0]
	r.traffic.Thick(t)
	cram(t, n.DataDir)
	r.traffic.Thick(t)
	r.traffic.Thick(t)
	if !n.Process.Running() {
		endedAfter(t, n, "no space left on device")
	}
	if err := os.Remove(filler(n.DataDir)); err != nil {
		t.Fatal(err)
	}
	freed := time.Now()
	if !n.Process.Running() {
		n.Start(t)
	}
	r.c.WaitReady(t)
	if took := time.Since(freed); took > within(10*time.Second) {
		t.Errorf("the node came back %s after its disk was freed", took)
	}
}

// cram leaves nothing free.
func cram(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filler(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 1<<20); len(chunk) > 0; {
		if n, err := f.Write(chunk); err != nil {
			chunk = chunk[:min(n, len(chunk))/2]
		}
	}
}

// awaitOther waits until another node leads.
func awaitOther(t *testing.T, c *harness.Cluster, leader *harness.Node) {
	t.Helper()
	harness.Eventually(t, within(10*time.Second), "another leader", func(context.Context) error {
		if c.Leader(t) == leader {
			return fmt.Errorf("node %s still leads", leader.Tag)
		}
		return nil
	})
}

// awaitRefusals waits until many calls were refused with the code.
func awaitRefusals(t *testing.T, r *row, code string) {
	t.Helper()
	before := r.Refused(code)
	harness.Eventually(t, 15*time.Second, "refusals with "+code, func(context.Context) error {
		if n := r.Refused(code) - before; n < 200 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
}

func filler(dir string) string { return filepath.Join(dir, "filler") }

// fill leaves less free than the low mark, and enough for what is in flight.
func fill(t *testing.T, dir string) {
	t.Helper()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	if free := int64(disk.Bavail) * disk.Bsize; free > lowMark {
		if err := os.WriteFile(filler(dir), make([]byte, free-lowMark*3/4), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
