package system

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/idnode/idnode/internal/freeport"
)

const (
	// readyLine is what a member process prints once it serves.
	readyLine = "ready"
	// readyWithin is how long a system may take until it serves.
	readyWithin = 30 * time.Second
	// endWithin is how long a process has to end before it is killed.
	endWithin = 15 * time.Second
	// pollEvery is how often it is looked whether something is so.
	pollEvery = 20 * time.Millisecond
)

// process is a process of a system under test.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a process whose input and output are pipes.
func (e Env) start(cmd *exec.Cmd) (*process, error) {
	if err := e.delaySyncs(cmd); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd}
	cmd.Stderr = os.Stderr
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// A signal from the terminal is for this process, which ends the others.
	cmd.SysProcAttr.Setpgid = true
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// delaySyncs has strace hold each fsync and fdatasync of the program up. The started process
// is the program itself, and strace a process of its own (-D) that ends with it.
func (e Env) delaySyncs(cmd *exec.Cmd) error {
	if e.SyncDelay == 0 || cmd.Err != nil {
		return cmd.Err
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		return fmt.Errorf("--sync-delay: %w", err)
	}
	delay := fmt.Sprintf("inject=fsync,fdatasync:delay_enter=%d", e.SyncDelay.Microseconds())
	cmd.Args = append([]string{
		strace, "-D", "-f", "-qq", "--seccomp-bpf", "-o", os.DevNull, "-e", "trace=fsync,fdatasync", "-e", delay,
		cmd.Path,
	}, cmd.Args[1:]...)
	cmd.Path = strace
	return nil
}

// startMember starts this same program as a member of a cluster.
func (e Env) startMember(kind string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return e.start(exec.Command(self, append([]string{kind}, args...)...))
}

// awaitReady reads the line that says so.
func (p *process) awaitReady() error {
	line, err := p.out.ReadString('\n')
	if line != readyLine+"\n" {
		return fmt.Errorf("a member says %q instead of being ready: %w", line, err)
	}
	return nil
}

// end stops the process, and kills it if it does not stop.
func (p *process) end(sig os.Signal) error {
	_ = p.in.Close()              // A Raft member ends with its input.
	_ = p.cmd.Process.Signal(sig) // It may have ended by itself.
	timer := time.AfterFunc(endWithin, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	// What it says last is read, so that it does not wait for that.
	_, _ = io.Copy(io.Discard, p.out)
	if err := p.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	return nil
}

// endAll ends processes together.
func endAll(processes []*process, sig os.Signal) error {
	ends := make(chan error)
	for _, p := range processes {
		go func() { ends <- p.end(sig) }()
	}
	var err error
	for range processes {
		err = errors.Join(err, <-ends)
	}
	return err
}

// freeAddresses returns n loopback addresses that were free a moment ago.
func freeAddresses(n int) ([]string, error) {
	var all []string
	for range n {
		address, err := freeport.Loopback()
		if err != nil {
			return nil, err
		}
		all = append(all, address)
	}
	return all, nil
}

// poll tries again and again until try succeeds, or it took too long.
func poll(ctx context.Context, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}
