package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	pluralize "github.com/gertd/go-pluralize"
)

// The way of a call through the files of this package:
//
//	ids.go, identity.go, …	what applications call: makes a request, and reads the answer
//	share.go	callers of one identity take a block in one call
//	call.go	one call, and what a try of it sends
//	retry.go	whether it is tried again, and what its outcome is
//	router.go	at which node; leader.go finds the leader, silent.go a node that hangs
//	node.go	the connection to a node; belongs.go decides which cluster the client is of
//	exchange.go	the stream on which the calls to a node share messages

// Client calls one or several idnode clusters. It is safe for concurrent use.
type Client struct {
	cfg Config
	// routers has a router for each cluster; the first is that of Config.Endpoints.
	routers []*router
	// mapped has the routers of Config.Clusters by folded database.
	mapped map[string]*router
	shares *shares
	// plurals makes the names of collections. It is made once it is needed, since it is expensive.
	plurals func() *pluralize.Client
	// byType has the HiLo handles of Go types by reflect.Type, and by typeIn where options name a database.
	byType sync.Map

	mu sync.Mutex
	// handles has the open HiLo and Snowflake handles.
	handles map[sourceKey]handle
	closed  bool
}

// sourceKey identifies what ids are taken from: an identity, a HiLo tag, or a pool of Snowflakes. That of
// a HiLo handle always has a separator, and that of a Snowflake handle none.
type sourceKey struct{ database, name, separator string }

// handle is a HiLo or a Snowflake.
type handle interface {
	Close(ctx context.Context) error
}

// handle returns the open handle with a key, which the first caller begins.
func (c *Client) handle(key sourceKey, begin func() (handle, error)) (handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, closedError("the client is closed")
	}
	if h := c.handles[key]; h != nil {
		return h, nil
	}
	h, err := begin()
	if err == nil {
		c.handles[key] = h
	}
	return h, err
}

// forget has later callers begin another handle.
func (c *Client) forget(key sourceKey, h handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handles[key] == h {
		delete(c.handles, key)
	}
}

// New returns a Client. It tries a first connection to learn the leader; if that fails, New
// does not: the nodes may start later, and calls return the error. New's error is about cfg,
// or ctx has ended.
func New(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, configError(err)
	}
	c := &Client{cfg: cfg, plurals: sync.OnceValue(pluralize.NewClient), handles: make(map[sourceKey]handle)}
	if err := c.newRouters(); err != nil {
		_ = c.Close(ctx) // It has taken no numbers.
		return nil, configError(err)
	}
	c.shares = c.newShares()
	end := time.Now().Add(lookTimeout)
	var looks sync.WaitGroup
	for _, r := range c.routers {
		looks.Go(func() { await(ctx, end, r.look(lookAgain, nil).done) })
	}
	looks.Wait()
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
	open := slices.Collect(maps.Values(c.handles))
	c.handles = nil
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var closing sync.WaitGroup
	errs := make([]error, len(open))
	for i, h := range open {
		closing.Go(func() { errs[i] = h.Close(ctx) })
	}
	closing.Wait()
	for _, r := range c.routers {
		r.close()
	}
	return errors.Join(errs...)
}
