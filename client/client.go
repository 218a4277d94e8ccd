package client

import (
	"context"
	"errors"
	"sync"
)

// Client calls an idnode cluster. It is safe for concurrent use.
type Client struct {
	cfg    Config
	router *router
	names  *names
	shares *shares

	mu sync.Mutex
	// generators has the handles given out, by collection and separator.
	generators map[generatorKey]*HiLo
	closed     bool
}

// New returns a Client for a cluster. It makes a first connection to learn the
// leader, which is no error if it fails: the nodes may come later, and the
// calls say what is wrong. The error is about cfg, or ctx has ended.
func New(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r, err := newRouter(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, router: r, names: newNames(cfg.Conventions), generators: make(map[generatorKey]*HiLo)}
	c.shares = c.newShares()
	r.known(ctx)
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), c.Close(ctx))
	}
	return c, nil
}

// Close gives the unused numbers of all HiLo handles back and closes the
// connections: calls in flight fail. It takes no longer than ctx allows, nor
// than Config.Timeout. The error says that numbers could not be given back;
// the Client is closed all the same. Closing it again does nothing.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	handles := c.generators
	c.generators = nil
	c.mu.Unlock()
	err := closeAll(ctx, c.cfg.Timeout, handles)
	c.router.close()
	return err
}
