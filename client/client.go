package client

import (
	"context"
	"sync"

	pluralize "github.com/gertd/go-pluralize"
)

// Client calls one or several idnode clusters. It is safe for concurrent use.
type Client struct {
	cfg Config
	// routers has a router for each cluster; the first is that of Config.Endpoints.
	routers []*router
	// mapped has the routers of Config.Clusters by folded database.
	mapped map[string]*router
	names  *names
	shares *shares

	mu sync.Mutex
	// handles has the HiLo handles by collection and separator.
	handles map[generatorKey]*HiLo
	// snowflakes has the Snowflake handles by database and pool.
	snowflakes map[poolKey]*Snowflake
	closed     bool
}

// New returns a Client. It tries a first connection to learn the leader; if that fails, New
// does not: the nodes may start later, and calls return the error. New's error is about cfg,
// or ctx has ended.
func New(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, configError(err)
	}
	c := &Client{
		cfg: cfg, names: &names{plurals: sync.OnceValue(pluralize.NewClient)},
		handles: make(map[generatorKey]*HiLo), snowflakes: make(map[poolKey]*Snowflake),
	}
	if err := c.newRouters(); err != nil {
		return nil, configError(err)
	}
	c.shares = c.newShares()
	c.known(ctx)
	if ctx.Err() != nil {
		_ = c.Close(ctx) // It has taken no numbers.
		return nil, gaveUp(ctx)
	}
	return c, nil
}

// Close gives the unused numbers of all HiLo handles and the workers of all Snowflake handles back,
// and closes the connections: calls in flight fail. It is bounded by ctx and Config.Timeout. An
// error means that numbers, or a worker, could not be given back; the Client is closed in any case.
// Closing it again does nothing.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	var handles []closer
	for _, h := range c.handles {
		handles = append(handles, h)
	}
	for _, s := range c.snowflakes {
		handles = append(handles, s)
	}
	c.handles, c.snowflakes = nil, nil
	c.mu.Unlock()
	err := closeAll(ctx, c.cfg.Timeout, handles)
	c.closeRouters()
	return err
}
