package client

import (
	"maps"
	"slices"
	"time"
)

// Age lets time pass for what a client knows of the cluster.
func Age(c *Client, d time.Duration) {
	r := c.routers[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newestAt.Add(-int64(d))
	l := r.newestLook // A look in progress goes on by its own times.
	aged := &look{began: l.began.Add(-d), heard: l.heard, done: l.done, answered: l.answered, any: l.any}
	if closed(l.any) {
		aged.first = l.first.Add(-d)
	}
	r.newestLook = aged
}

// Waiting counts the callers that wait to share a call.
func Waiting(c *Client) int {
	c.shares.mu.Lock()
	defer c.shares.mu.Unlock()
	n := 0
	for _, h := range c.shares.open {
		n += len(h.waiting)
	}
	return n
}

// LabelOf makes the label of a host's and a program's name.
func LabelOf(host, program string) string { return labelOf(host, program) }

// AgeFiles lets time pass until the TLS files are looked at again.
func AgeFiles(c *Client) {
	s := c.routers[0].secured
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readAt = time.Time{}
}

// Look begins a look for the leader, and waits for its end.
func Look(c *Client) { <-c.routers[0].look(0, nil).done }

// Learnt returns the addresses of nodes that are no endpoints.
func Learnt(c *Client) []string {
	r := c.routers[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.learned))
}

// InOutage reports whether no node has answered the newest tries and looks.
func InOutage(c *Client) bool {
	o := &c.routers[0].outage
	return o.began.Load() > o.answered.Load()
}

// Broken reports whether the stream to an endpoint, on which there were calls, is broken.
func Broken(c *Client, address string) bool {
	for _, n := range c.routers[0].given {
		if n.address == address {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.flow.broken()
		}
	}
	return false
}
