package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/server/node"
)

// devCluster is a cluster in this process. Its owner calls run once.
type devCluster struct {
	newServer newServer
	log       *slog.Logger
	specs     []devNode
	nodes     []server
	// lives are those of the nodes that run; nil for a node that is lost.
	lives []*devLife
	// told are the lines of the console, and say prints its answers. expectWarnings is devOptions'.
	told           <-chan string
	say            func(text string)
	expectWarnings func(bool)
	// news has what happened to a node; its functions are called by run, and return what to say.
	news chan func() string
}

// devLife is a node that runs.
type devLife struct {
	// kill ends it as a crash does; ended gets its error.
	kill  func()
	ended chan error
}

// newDevCluster assembles the nodes; none runs yet.
func newDevCluster(newServer newServer, specs []devNode, log *slog.Logger) (*devCluster, error) {
	if err := checkPorts(specs); err != nil {
		return nil, err
	}
	c := &devCluster{newServer: newServer, log: log, specs: specs, expectWarnings: func(bool) {}, news: make(chan func() string)}
	for i, spec := range specs {
		n, err := c.assemble(i)
		if err != nil {
			return nil, errors.Join(endOf(spec.tag, err), c.close())
		}
		c.nodes, c.lives = append(c.nodes, n), append(c.lives, nil)
	}
	return c, nil
}

// assemble makes a node. Its data may know the others at the ports of another --base-port.
func (c *devCluster) assemble(i int) (server, error) {
	cfg, err := configOf(slices.Concat(c.specs[i].flags(c.specs), longTimeouts, localNames))
	if err != nil {
		return nil, err
	}
	cfg.Tuning = failpoint.Tuning{Dial: map[string]string{}, DialPeer: map[string]string{}}
	for _, spec := range c.specs {
		cfg.Tuning.Dial[spec.tag], cfg.Tuning.DialPeer[spec.tag] = spec.raft, spec.grpc
	}
	return c.newServer(cfg, c.log.With("node", c.specs[i].tag))
}

// close closes nodes that will not run: a node closes its parts when it ends.
func (c *devCluster) close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return c.run(ctx, func(context.Context) error { return nil })
}

// run runs all nodes, calls introduce once all of them serve, obeys the console, and ends them all
// when ctx ends, when introduce fails, or when a node ended by itself.
func (c *devCluster) run(ctx context.Context, introduce func(context.Context) error) error {
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	if ctx.Err() != nil {
		stop(nil)
	}
	defer context.AfterFunc(ctx, func() {
		c.expectWarnings(true) // Before the nodes' contexts end.
		stop(nil)
	})()
	for i := range c.nodes {
		c.launch(running, stop, i)
	}
	if err := c.whenReady(running, introduce); err != nil {
		stop(err)
	}
	for running.Err() == nil {
		select {
		case line := <-c.told:
			c.say(c.obey(running, stop, line))
		case happened := <-c.news:
			c.say(happened())
		case <-running.Done():
		}
	}
	if ctx.Err() != nil {
		// Stopped, perhaps while the nodes were still starting.
		return c.await()
	}
	_ = c.await()
	return context.Cause(running)
}

// tell hands news to run, unless ctx ends before.
func (c *devCluster) tell(ctx context.Context, happened func() string) bool {
	select {
	case c.news <- happened:
		return true
	case <-ctx.Done():
		return false
	}
}

// launch runs a node until ctx ends or it is killed. One that ends by itself, and was not removed,
// stops the others.
func (c *devCluster) launch(ctx context.Context, stop context.CancelCauseFunc, i int) {
	alive, end := context.WithCancelCause(ctx)
	life := &devLife{kill: func() { end(node.ErrKilled) }, ended: make(chan error, 1)}
	c.lives[i] = life
	go func() {
		err := c.runOne(alive, i)
		removed := errors.Is(err, member.ErrRemoved) && c.tell(alive, func() string { return c.lost(i, err.Error()) })
		if !removed && !errors.Is(context.Cause(alive), node.ErrKilled) {
			stop(err) // The first of all to end names the cause for the others.
		}
		life.ended <- err
	}()
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
	return &endedError{fmt.Errorf("node %s: %w", tag, err)}
}

// await waits for all nodes to end, with a bound, and returns the errors that came with it.
func (c *devCluster) await() error {
	bound := time.After(devStop)
	var errs []error
	for _, life := range c.lives {
		if life == nil {
			continue
		}
		select {
		case err := <-life.ended:
			errs = append(errs, err)
		case <-bound:
			return errors.Join(append(errs, &endedError{fmt.Errorf("not all nodes stopped within %s", devStop)})...)
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
			return &unavailableError{fmt.Errorf("node %s did not get ready: %w; --log-level info shows what it waits for", c.specs[i].tag, err)}
		}
	}
	return introduce(ctx)
}

const consoleHelp = "kill A: node A ends as by kill -9; start A: it starts again with its data; Ctrl-C ends all"

// linesOf sends the lines of a stream until it or ctx ends.
func linesOf(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		for scan := bufio.NewScanner(in); scan.Scan(); {
			select {
			case lines <- scan.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// obey does what a line of the console says, and returns the answer.
func (c *devCluster) obey(ctx context.Context, stop context.CancelCauseFunc, line string) string {
	words := append(strings.Fields(line), "", "")
	tag := strings.ToUpper(words[1])
	i := slices.IndexFunc(c.specs, func(n devNode) bool { return n.tag == tag })
	switch {
	case words[0] != "kill" && words[0] != "start":
		return consoleHelp
	case i < 0:
		return fmt.Sprintf("there is no node %s", quote(words[1]))
	case words[0] == "kill" && c.lives[i] != nil:
		return c.kill(i)
	case words[0] == "start" && c.lives[i] == nil:
		return c.restart(ctx, stop, i)
	case words[0] == "kill":
		return tag + " does not run; start " + tag
	default:
		return tag + " runs already"
	}
}

// kill ends a node as a crash does. Warnings of the others are expected from here on.
func (c *devCluster) kill(i int) string {
	life := c.lives[i]
	c.expectWarnings(true)
	life.kill()
	if err := <-life.ended; err != nil {
		return c.lost(i, err.Error())
	}
	tag := c.specs[i].tag
	return c.lost(i, tag+" is killed"+c.without(i)+". start "+tag+" brings it back")
}

// without says what a cluster does without one of its nodes.
func (c *devCluster) without(i int) string {
	running := 0
	for j, life := range c.lives {
		if life != nil && j != i {
			running++
		}
	}
	if 2*running <= len(c.lives) {
		return "; identities wait for a majority"
	}
	return "; ids go on: idnode next 'invoices|'"
}

func (c *devCluster) lost(i int, text string) string {
	c.lives[i] = nil
	return text
}

func (c *devCluster) restart(ctx context.Context, stop context.CancelCauseFunc, i int) string {
	tag := c.specs[i].tag
	n, err := c.assemble(i)
	if err != nil {
		return fmt.Sprintf("%s does not start: %v", tag, err)
	}
	c.nodes[i] = n
	c.launch(ctx, stop, i)
	go func() {
		if n.Ready(ctx) == nil {
			c.tell(ctx, func() string {
				c.expectWarnings(slices.Contains(c.lives, nil))
				return tag + " is ready"
			})
		}
	}()
	return tag + " starts"
}
