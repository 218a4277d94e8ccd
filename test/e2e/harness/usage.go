package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Memory is the resident memory of the process, in bytes.
func (p *Process) Memory(t testing.TB) int64 {
	t.Helper()
	return p.memory(t, "VmRSS:")
}

// PeakMemory is the most that Memory has ever been.
func (p *Process) PeakMemory(t testing.TB) int64 {
	t.Helper()
	return p.memory(t, "VmHWM:")
}

// ForgetPeakMemory makes PeakMemory begin with what there is now.
func (p *Process) ForgetPeakMemory(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Pid()), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

func (p *Process) memory(t testing.TB, key string) int64 {
	t.Helper()
	for line := range strings.Lines(p.proc(t, "status")) {
		if text, ok := strings.CutPrefix(line, key); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the kernel does not tell the resident memory")
	return 0
}

// Memory is the resident memory of each node, in bytes.
func (c *Cluster) Memory(t testing.TB) []int64 {
	t.Helper()
	var bytes []int64
	for _, n := range c.Nodes {
		bytes = append(bytes, n.Process.Memory(t))
	}
	return bytes
}

// CPU is the processor time that the process has used.
func (p *Process) CPU(t testing.TB) time.Duration {
	t.Helper()
	// Fields 14 and 15 count ticks in user mode and in the kernel; the name, which
	// may hold spaces, is field 2 and in parentheses. A tick is 10 ms on every
	// platform that Go runs on (USER_HZ).
	stat := p.proc(t, "stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	var ticks int64
	for _, text := range fields[11:13] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// OpenFiles is how many files and connections the process has open.
func (p *Process) OpenFiles(t testing.TB) int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// LimitFiles bounds how many files and connections the running process may have open;
// those it has stay.
func (p *Process) LimitFiles(t testing.TB, most int) {
	t.Helper()
	out, err := exec.Command("prlimit", fmt.Sprintf("--pid=%d", p.Pid()), fmt.Sprintf("--nofile=%d:4096", most)).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("prlimit is not installed: no way to leave a process without files")
	}
	if err != nil {
		t.Fatalf("prlimit: %v %s", err, out)
	}
}

func (p *Process) proc(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.Pid(), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
