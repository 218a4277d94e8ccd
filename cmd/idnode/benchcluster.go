//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/internal/freeport"
)

const (
	// benchReady bounds the wait until every process serves.
	benchReady = 30 * time.Second
	// benchStop is how long a process has to end before it is killed.
	benchStop = 15 * time.Second
)

// benchCluster is a cluster of processes of this same program.
type benchCluster struct {
	dir       string
	processes []*exec.Cmd
	endpoints []string
}

// startBenchCluster starts size processes on loopback, each with the flags too, and waits until all serve.
func startBenchCluster(ctx context.Context, stderr io.Writer, size int, flags []string) (_ *benchCluster, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &benchCluster{}
	defer func() {
		if err != nil {
			c.end()
		}
	}()
	if c.dir, err = os.MkdirTemp("", "idnode-bench-"); err != nil {
		return nil, err
	}
	specs, err := layOut(c.dir, size, func(int, int) (string, error) { return freeport.Loopback() })
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		args := append([]string{"serve", "--log-level", "error"}, spec.flags(specs)...)
		p := exec.Command(program, append(args, flags...)...)
		p.Stderr = stderr
		p.Env = []string{}
		// A signal from the terminal is for this process, which ends the others.
		p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := p.Start(); err != nil {
			return nil, err
		}
		c.processes = append(c.processes, p)
		c.endpoints = append(c.endpoints, spec.grpc)
	}
	ctx, cancel := context.WithTimeout(ctx, benchReady)
	defer cancel()
	for _, endpoint := range c.endpoints {
		if err := awaitServing(ctx, endpoint); err != nil {
			return nil, &unavailableError{fmt.Errorf("the node at %s does not serve: %w", endpoint, err)}
		}
	}
	return c, nil
}

func awaitServing(ctx context.Context, endpoint string) error {
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	watch, err := healthv1.NewHealthClient(conn).Watch(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	for {
		r, err := watch.Recv()
		if err != nil {
			return err
		}
		if r.Status == healthv1.HealthCheckResponse_SERVING {
			return nil
		}
	}
}

// end stops the processes, kills those that do not stop, and removes the data.
func (c *benchCluster) end() {
	for _, p := range c.processes {
		_ = p.Process.Signal(syscall.SIGTERM) // It may have ended by itself.
	}
	for _, p := range c.processes {
		timer := time.AfterFunc(benchStop, func() { _ = p.Process.Kill() })
		if err := p.Wait(); err != nil && !is[*exec.ExitError](err) {
			_ = p.Process.Kill()
		}
		timer.Stop()
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir) // It is in the folder for temporary files.
	}
}
