package harness

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is one running idnode.
type Process struct {
	cmd *exec.Cmd
	log string
	// before is how long the log was when the process was started.
	before int64
	done   chan struct{}
	// err is what Wait gave; read it only after done is closed.
	err error
}

// StartProcess starts the program with args; its output goes to the file log,
// which is printed if the test fails. The process is killed when the test ends.
func StartProcess(t testing.TB, log string, args ...string) *Process {
	t.Helper()
	return startProcess(t, Binary(t), nil, log, args)
}

// startProcess does the same with the given program and further variables in its
// environment.
func startProcess(t testing.TB, program string, env []string, log string, args []string) *Process {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	before := logBytes(t, log)
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(cleanEnvironment(), env...)
	// The test may be killed before it cleans up; its children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{cmd: cmd, log: log, before: before, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(log), p.Tail(logLines()))
		}
	})
	return p
}

// Command is a command line of the program under test, which sees none of the variables
// that tests are told things by.
func Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return CommandOf(t, Binary(t), args...)
}

// CommandOf is such a command line of another program, as of another release.
func CommandOf(t testing.TB, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = cleanEnvironment()
	return cmd
}

// cleanEnvironment is the test's environment without idnode's own variables.
func cleanEnvironment() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "IDNODE_") {
			env = append(env, kv)
		}
	}
	return env
}

// Kill ends the process as a crash would and waits for it.
func (p *Process) Kill() {
	p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// Signal sends sig.
func (p *Process) Signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// Pid is the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Stop asks the process to stop cleanly and waits; it must exit with 0. One that has logged nothing yet
// is no node: it may die of the signal, or say that the reading of its settings was interrupted.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	begun := logBytes(t, p.log) > p.before
	p.Signal(t, syscall.SIGTERM)
	if p.Wait(t, 20*time.Second) != 0 && begun {
		t.Fatalf("a stopped node ended: %v:\n%s", p.err, p.Tail(20))
	}
}

// logBytes is how long a log is.
func logBytes(t testing.TB, log string) int64 {
	t.Helper()
	info, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// Wait waits for the process to end and returns its exit code.
func (p *Process) Wait(t testing.TB, within time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
		t.Fatalf("the process did not end within %s:\n%s", within, p.Tail(40))
	}
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// Running says whether the process was started and has not ended.
func (p *Process) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Output is all the process has printed.
func (p *Process) Output() string {
	b, _ := os.ReadFile(p.log)
	return string(b)
}

// Tail is the last lines the process has printed.
func (p *Process) Tail(lines int) string {
	all := strings.Split(strings.TrimRight(p.Output(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// logLines is how much of a process's output a failed test prints: 40 lines, or
// as many as IDNODE_E2E_LOG_LINES says.
func logLines() int {
	if n, err := strconv.Atoi(os.Getenv("IDNODE_E2E_LOG_LINES")); err == nil {
		return n
	}
	return 40
}
