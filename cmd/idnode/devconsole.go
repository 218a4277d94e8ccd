package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// consoleHelp lists what can be told to dev.
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
	return c.lost(i, tag+" is killed; ids go on: idnode next 'invoices|'. start "+tag+" brings it back")
}

// lost notes that a node runs no more.
func (c *devCluster) lost(i int, text string) string {
	c.lives[i] = nil
	return text
}

// restart starts a node again, with its data.
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
