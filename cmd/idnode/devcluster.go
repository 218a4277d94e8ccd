package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// devCluster is a cluster in this process. Its owner calls run once.
type devCluster struct {
	specs []devNode
	nodes []server
}

// newDevCluster puts the nodes together; none runs yet.
func (a *app) newDevCluster(specs []devNode, log *slog.Logger) (*devCluster, error) {
	if err := checkPorts(specs); err != nil {
		return nil, err
	}
	c := &devCluster{specs: specs}
	for _, spec := range specs {
		n, err := a.newServer(spec.flags(specs), log.With("node", spec.tag))
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", spec.tag, err)
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

// nodeEnd is how a node ended.
type nodeEnd struct {
	tag string
	err error
}

// run runs all nodes, calls introduce when all of them serve, and ends them
// together when ctx ends, when introduce fails, or when one ended by itself.
func (c *devCluster) run(ctx context.Context, introduce func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan nodeEnd, len(c.nodes))
	for i, n := range c.nodes {
		go func() { ends <- nodeEnd{tag: c.specs[i].tag, err: n.Run(ctx)} }()
	}
	introduced := make(chan error, 1)
	go func() { introduced <- c.whenReady(ctx, introduce) }()
	running := len(c.nodes)
	var first error
	select {
	case end := <-ends:
		running--
		first = end.early(ctx)
		cancel()
		<-introduced
	case first = <-introduced:
		if first == nil {
			select {
			case end := <-ends:
				running--
				first = end.early(ctx)
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			// Interrupted while it started: that is a clean end too.
			first = nil
		}
		cancel()
	}
	return errors.Join(first, await(ends, running))
}

// early says why it matters that a node ended; nil if it was told to.
func (e nodeEnd) early(ctx context.Context) error {
	switch {
	case e.err != nil:
		return fmt.Errorf("node %s: %w", e.tag, e.err)
	case ctx.Err() == nil:
		return fmt.Errorf("node %s ended by itself", e.tag)
	default:
		return nil
	}
}

// await waits for the nodes that still run, with a bound.
func await(ends <-chan nodeEnd, running int) error {
	bound := time.After(devStop)
	var errs []error
	for range running {
		select {
		case end := <-ends:
			if end.err != nil && !errors.Is(end.err, context.Canceled) {
				errs = append(errs, fmt.Errorf("node %s: %w", end.tag, end.err))
			}
		case <-bound:
			return errors.Join(append(errs, fmt.Errorf("not all nodes stopped within %s", devStop))...)
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
			return &unavailableError{err: fmt.Errorf("node %s did not get ready: %w", c.specs[i].tag, err)}
		}
	}
	return introduce(ctx)
}
