package harness

import (
	"bufio"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// StallDisk makes every fdatasync of the process hang for d from now on, until
// release is called: as with a real disk, the process cannot be gone altogether
// before. It skips the test where strace is not there, or may not trace.
func (p *Process) StallDisk(t testing.TB, d time.Duration) (release func()) {
	t.Helper()
	return p.inject(t, "fdatasync", "delay_enter="+strconv.Itoa(int(d.Microseconds())))
}

// SlowDisk makes every fdatasync of the node take d longer from its next start on. It skips
// the test where strace is not there, or may not trace. The node is its own process, and
// other calls of it are not stopped at.
func (n *Node) SlowDisk(t testing.TB, d time.Duration) {
	t.Helper()
	n.runUnder(
		t, "strace", "-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null",
		"-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter="+strconv.Itoa(int(d.Microseconds())),
	)
}

// runUnder lets a command run the node's program from its next start on. It skips the test
// where the command runs none.
func (n *Node) runUnder(t testing.TB, command ...string) {
	t.Helper()
	if out, err := exec.Command(command[0], append(command[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("%s runs no program here: %v: %s", command[0], err, out)
	}
	n.under = append(n.under, command...)
}

// FailDisk makes every fdatasync of the process fail with EIO from now on.
func (p *Process) FailDisk(t testing.TB) (release func()) {
	t.Helper()
	return p.inject(t, "fdatasync", "error=EIO")
}

// CanTrace says whether there is what makes system calls fail.
func CanTrace() bool {
	_, err := exec.LookPath("strace")
	return err == nil
}

// KillInCall kills the process as it makes the system call for the nth time from
// now on; the call is not made. call is a name, or a pattern between slashes.
func (p *Process) KillInCall(t testing.TB, call string, nth int) (release func()) {
	t.Helper()
	return p.inject(t, call, "signal=KILL:when="+strconv.Itoa(nth))
}

// inject makes a system call of the process do what strace can make it do.
func (p *Process) inject(t testing.TB, call, what string) (release func()) {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: no way to break a disk")
	}
	strace := exec.Command(
		path, "-f", "-p", strconv.Itoa(p.Pid()), "-o", "/dev/null",
		"-e", "trace="+call, "-e", "inject="+call+":"+what,
	)
	strace.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := strace.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := strace.Start(); err != nil {
		t.Skipf("strace does not start: %v", err)
	}
	release = sync.OnceFunc(func() {
		strace.Process.Kill()
		strace.Wait()
	})
	t.Cleanup(release)
	attached := make(chan string)
	go func() {
		lines := bufio.NewReader(out)
		first, _ := lines.ReadString('\n')
		attached <- first
		io.Copy(io.Discard, lines)
	}()
	if first := <-attached; !strings.Contains(first, "attached") {
		t.Skipf("strace cannot trace here: %s", first)
	}
	return release
}
