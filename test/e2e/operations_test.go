package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/idnode/idnode/test/tier"
)

// procedures are the pages below docs/operate/ whose commands are tried, in the order of
// which docs/operate/first-cluster.md tells its readers.
var procedures = []string{"first-cluster", "members", "backups", "recovery"}

// TestProcedures does what the pages say, in order, in one shell, and compares what is
// printed with what they show. The nodes are processes on a loopback address of its own.
func TestProcedures(t *testing.T) {
	tier.Long(t)
	needPrograms(t, "bash", "curl", "install")
	address := fmt.Sprintf("127.%d.%d.7", 1+os.Getpid()%250, os.Getpid()/250%250)
	var steps []step
	for _, page := range procedures {
		text, err := os.ReadFile("../../docs/operate/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		here := stepsOf(t, strings.ReplaceAll(string(text), "127.0.0.1", address))
		if len(here) == 0 {
			t.Errorf("%s.md has no commands", page)
		}
		steps = append(steps, here...)
	}
	s := newShell(t)
	smallDisks := s.mountDisks(t)
	for i, output := range s.run(t, steps) {
		if smallDisks || !steps[i].onSmallDisks {
			steps[i].compare(t, output, shape)
		}
	}
}

// mountDisks says to the commands whether nodes may have small disks of their own, and
// takes those away at the end.
func (s *shell) mountDisks(t *testing.T) bool {
	t.Helper()
	if !mayMount(t) {
		t.Log("no small disks here (mount is not allowed): a full disk is not tried")
		s.env = append(s.env, "SMALL_DISKS=")
		return false
	}
	s.env = append(s.env, "SMALL_DISKS=yes")
	t.Cleanup(func() {
		for _, node := range []string{"G", "H"} {
			_ = syscall.Unmount(filepath.Join(s.dir, node), syscall.MNT_DETACH) // Some are gone already.
		}
	})
	return true
}

// mayMount says whether this process may make disks.
func mayMount(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	if syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") != nil {
		return false
	}
	return syscall.Unmount(dir, syscall.MNT_DETACH) == nil
}
