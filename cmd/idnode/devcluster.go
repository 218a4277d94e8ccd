package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/server/config"
)

// devCluster is a cluster in this process. Its owner calls run once.
type devCluster struct {
	specs []devNode
	nodes []server
}

// newDevCluster assembles the nodes; none runs yet.
func newDevCluster(newServer newServer, specs []devNode, log *slog.Logger) (*devCluster, error) {
	if err := checkPorts(specs); err != nil {
		return nil, err
	}
	c := &devCluster{specs: specs}
	// The data may know the others at the ports of another --base-port.
	tuning := failpoint.Tuning{Dial: map[string]string{}, DialPeer: map[string]string{}}
	for _, spec := range specs {
		tuning.Dial[spec.tag], tuning.DialPeer[spec.tag] = spec.raft, spec.grpc
	}
	for _, spec := range specs {
		flags := append(spec.flags(specs), longTimeouts...)
		cfg, err := configOf(flags)
		if err == nil {
			cfg.Tuning = tuning
			err = c.add(newServer, cfg, log.With("node", spec.tag))
		}
		if err != nil {
			return nil, errors.Join(endOf(spec.tag, err), c.close())
		}
	}
	return c, nil
}

func (c *devCluster) add(newServer newServer, cfg *config.Config, log *slog.Logger) error {
	n, err := newServer(cfg, log)
	if err == nil {
		c.nodes = append(c.nodes, n)
	}
	return err
}

// close closes nodes that will not run: a node closes its parts when it ends.
func (c *devCluster) close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return c.run(ctx, func(context.Context) error { return nil })
}

// run runs all nodes, calls introduce once all of them serve, and ends them all when ctx ends,
// when introduce fails, or when a node ended by itself.
func (c *devCluster) run(ctx context.Context, introduce func(context.Context) error) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ends := make(chan error, len(c.nodes))
	for i := range c.nodes {
		go func() {
			err := c.runOne(running, i)
			// The first of all to end names the cause for the others.
			stop(err)
			ends <- err
		}()
	}
	if err := c.whenReady(running, introduce); err != nil {
		stop(err)
	}
	<-running.Done()
	if ctx.Err() != nil {
		// Stopped, perhaps while the nodes were still starting.
		return c.await(ends)
	}
	_ = c.await(ends)
	return context.Cause(running)
}

// runOne runs a node and returns why it ended, unless ctx ended.
func (c *devCluster) runOne(ctx context.Context, i int) error {
	err := c.nodes[i].Run(ctx)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return nil
	case ctx.Err() == nil && err == nil:
		err = errors.New("ended by itself")
	}
	return endOf(c.specs[i].tag, err)
}

// endOf returns the error that ended a node, with its tag; nil for a clean end.
func endOf(tag string, err error) error {
	if err == nil {
		return nil
	}
	return &endedError{err: fmt.Errorf("node %s: %w", tag, err)}
}

// await waits for all nodes to end, with a bound, and returns the errors that
// came with it.
func (c *devCluster) await(ends <-chan error) error {
	bound := time.After(devStop)
	var errs []error
	for range c.nodes {
		select {
		case err := <-ends:
			errs = append(errs, err)
		case <-bound:
			return errors.Join(append(errs, &endedError{err: fmt.Errorf("not all nodes stopped within %s", devStop)})...)
		}
	}
	return errors.Join(errs...)
}

// whenReady calls introduce once every node serves with a quorum.
func (c *devCluster) whenReady(ctx context.Context, introduce func(context.Context) error) error {
	ready, cancel := context.WithTimeout(ctx, devReady)
	defer cancel()
	for i, n := range c.nodes {
		if err := n.Ready(ready); err != nil {
			return &unavailableError{err: fmt.Errorf("node %s did not get ready: %w; --log-level info shows what it waits for", c.specs[i].tag, err)}
		}
	}
	return introduce(ctx)
}
