package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/hilo/generator"
)

// HiLo is a handle that gives the ids of one collection, most of them without a call: NextID
// gives "users/65-A", Next the number with its node tag, NextIDs many ids. It is safe for
// concurrent use, and meant to be shared.
type HiLo = generator.Generator

// generatorKey identifies a handle.
type generatorKey struct{ database, tag, separator string }

// WithFirstSize sets the size of a handle's first range, 1 to 1,048,576 numbers. Later sizes
// follow use.
func WithFirstSize(n int64) Option { return func(o *options) { o.firstSize = n } }

// HiLo returns the handle for a collection's tag. The first call makes it, and later calls
// share it: their options other than database and separator are ignored. It makes no network
// call. An invalid tag is the error of the handle's methods.
//
// Client.Close closes the handle, so that its unused numbers are given back.
func (c *Client) HiLo(tag string, opts ...Option) *HiLo {
	o := c.options(opts)
	key := generatorKey{o.database, tag, o.parts()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return failing(closedError())
	}
	if g := c.generators[key]; g != nil {
		return g
	}
	g, err := c.newHiLo(key, o)
	if err != nil {
		return failing(err)
	}
	c.generators[key] = g
	return g
}

// NextHiLoID is HiLo(tag).NextID.
func (c *Client) NextHiLoID(ctx context.Context, tag string, opts ...Option) (string, error) {
	return c.HiLo(tag, opts...).NextID(ctx)
}

// newHiLo checks everything that the cluster would refuse, and makes the handle.
func (c *Client) newHiLo(key generatorKey, o options) (*HiLo, error) {
	if _, err := docid.ParseDatabase(key.database); err != nil {
		return nil, invalid(err)
	}
	if _, err := docid.ParseSeparator(key.separator); err != nil {
		return nil, invalid(err)
	}
	if err := docid.ValidateTag(key.tag, key.separator); err != nil {
		return nil, invalid(err)
	}
	// The client's own bound ends first, because its error says more.
	cfg := generator.Config{FirstSize: o.firstSize, Timeout: c.cfg.Timeout + time.Second}
	g, err := generator.New(&rangeSource{client: c, key: key}, cfg)
	if errors.Is(err, hilo.ErrSize) {
		return nil, invalidField("INVALID_SIZE", "size", err.Error())
	}
	return g, err
}

// rangeSource is a generator's RangeSource. Each call has a request id, so a range whose
// answer was lost is returned by the next try, or by the next call.
type rangeSource struct {
	client *Client
	key    generatorKey
	// lost is the error of the last call of Next if its outcome is unknown.
	lost *Error
}

func (s *rangeSource) options() []Option {
	return []Option{WithDatabase(s.key.database), WithSeparator(s.key.separator)}
}

// Next implements generator.RangeSource. Calls are sequential, and the call after a failed
// one has the same request.
func (s *rangeSource) Next(ctx context.Context, r generator.Request) (generator.Range, error) {
	opts := s.options()
	repeats := s.lost != nil
	if repeats {
		opts = append(opts, WithRequestID(s.lost.RequestID), WithRetrySince(s.lost.RetrySince))
	}
	got, err := s.client.NextRange(ctx, s.key.tag, r, opts...)
	s.lost = nil
	if errors.Is(err, ErrOutcomeUnknown) {
		errors.As(err, &s.lost)
	}
	if repeats && s.lost == nil && errors.Is(err, ErrRequestIDExpired) {
		return s.Next(ctx, r) // The earlier request can no longer be identified.
	}
	return got, err
}

// Return implements generator.RangeSource.
func (s *rangeSource) Return(ctx context.Context, r generator.Range, last int64) error {
	_, err := s.client.ReturnRange(ctx, s.key.tag, r, last, s.options()...)
	return err
}

// failing returns a handle whose methods fail with err, so that HiLo can be used in one
// expression.
func failing(err error) *HiLo {
	g, _ := generator.New(failingSource{err}, generator.Config{}) // the zero Config is valid
	return g
}

type failingSource struct{ err error }

func (s failingSource) Next(context.Context, generator.Request) (generator.Range, error) {
	return generator.Range{}, s.err
}
func (s failingSource) Return(context.Context, generator.Range, int64) error { return nil }

// closeAll closes all handles concurrently.
func closeAll(ctx context.Context, bound time.Duration, handles map[generatorKey]*HiLo) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, len(handles))
	for _, g := range handles {
		wg.Go(func() { errs <- g.Close(ctx) })
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}
