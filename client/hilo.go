package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/generator"
	snowflakes "github.com/idnode/idnode/client/snowflake/generator"
)

// HiLo is a handle that gives the ids of one collection, most of them without a call. It is
// safe for concurrent use, and meant to be shared.
type HiLo struct {
	client  *Client
	key     sourceKey
	numbers *generator.Generator
	// err is why there are no numbers; nil if there are.
	err error
}

// Number is a number of a HiLo range with the other parts of its id.
type Number = generator.Number

// HiLo returns the handle for a collection's tag. The first call makes it, and later calls
// share it: their options other than database and separator are ignored. It makes no network
// call. An invalid tag is the error of the handle's methods.
//
// Client.Close closes the handle, so that its unused numbers are given back.
func (c *Client) HiLo(tag string, opts ...Option) *HiLo {
	o := c.options(opts, hasSeparator|hasFirstSize)
	if o.err != nil {
		return &HiLo{err: o.err}
	}
	key := sourceKey{o.database, tag, cmp.Or(o.separator, docid.DefaultSeparator)}
	h, err := c.handle(key, func() (handle, error) { return c.newHiLo(key, o) })
	if err != nil {
		return &HiLo{err: err}
	}
	return h.(*HiLo)
}

// NextHiLoID is HiLo(tag).NextID.
func (c *Client) NextHiLoID(ctx context.Context, tag string, opts ...Option) (string, error) {
	return c.HiLo(tag, opts...).NextID(ctx)
}

// newHiLo checks everything that the cluster would refuse, and makes a handle.
func (c *Client) newHiLo(key sourceKey, o options) (*HiLo, error) {
	if _, err := docid.ParseDatabase(key.database); err != nil {
		return nil, invalid(err)
	}
	if err := docid.ValidateTag(key.name, key.separator); err != nil {
		return nil, invalid(err)
	}
	// The client's own bound ends first, because its error says more.
	cfg := generator.Config{FirstSize: o.firstSize, Timeout: c.cfg.Timeout + time.Second}
	numbers, err := generator.New(&rangeSource{client: c, key: key}, cfg)
	if err != nil {
		return nil, invalidField("INVALID_SIZE", "size", err.Error())
	}
	return &HiLo{client: c, key: key, numbers: numbers}, nil
}

// Next takes a number. It waits only if no number is at hand, at most until ctx ends. After an
// error the next call tries again; a call with an error has taken no number.
func (h *HiLo) Next(ctx context.Context) (Number, error) {
	if h.err != nil {
		return Number{}, h.err
	}
	n, err := h.numbers.Next(ctx)
	if err != nil {
		return n, handleError(ctx, err)
	}
	return n, nil
}

// NextID takes a number as Next does, and returns its id, such as "users/65-A".
func (h *HiLo) NextID(ctx context.Context) (string, error) {
	n, err := h.Next(ctx)
	return n.String(), err
}

// NextIDs takes n numbers, 1 to 1,048,576, and returns their ids in ascending order. They need
// not be consecutive. With an error it returns the ids taken before, which belong to the caller.
func (h *HiLo) NextIDs(ctx context.Context, n int) ([]string, error) {
	if h.err != nil {
		return nil, h.err
	}
	ids, err := h.numbers.NextIDs(ctx, n)
	return ids, handleError(ctx, err)
}

// Close gives the unused numbers back, within ctx and about twice Config.Timeout, and fails
// all later calls with ErrClosed. Client.HiLo then makes another handle for the tag. An error
// means that numbers could not be given back.
func (h *HiLo) Close(ctx context.Context) error {
	if h.err != nil {
		return nil
	}
	h.client.forget(h.key, h)
	return handleError(ctx, h.numbers.Close(ctx))
}

// handleError returns an error of a generator as an *Error.
func handleError(ctx context.Context, err error) error {
	var early *snowflakes.EarlyError
	switch _, own := errors.AsType[*Error](err); {
	case err == nil, own:
		return err
	case errors.Is(err, ErrClosed), errors.Is(err, snowflakes.ErrClosed):
		return closedError("the handle is closed")
	case errors.Is(err, generator.ErrCount), errors.Is(err, snowflakes.ErrCount):
		return invalidField("INVALID_COUNT", "count", err.Error())
	case errors.As(err, &early):
		return &Error{Code: codes.Unavailable, Reason: "WINDOW_EARLY", Message: err.Error(), RetryAfter: early.By}
	case ctx.Err() != nil:
		return gaveUp(ctx)
	default:
		return malformed(err.Error())
	}
}

// rangeSource is a generator's RangeSource. Each call has a request id, so a range whose
// answer was lost is returned by the next try, or by the next call.
type rangeSource struct {
	client *Client
	key    sourceKey
	// lost is the error of the last call of Next if its outcome is unknown.
	lost *Error
}

// Next implements generator.RangeSource. Calls are sequential, and the call after a failed
// one has the same request.
func (s *rangeSource) Next(ctx context.Context, r generator.Request) (generator.Range, error) {
	opts := []Option{WithDatabase(s.key.database), WithSeparator(s.key.separator)}
	repeats := s.lost != nil
	if repeats {
		opts = append(opts, WithRetryOf(s.lost.RequestID))
	}
	got, err := s.client.NextRange(ctx, s.key.name, r, opts...)
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
	returned, err := s.client.ReturnRange(ctx, s.key.name, r, last, WithDatabase(s.key.database))
	if err == nil && !returned {
		s.client.cfg.Logger.Info("idnode: unused numbers came back too late, and are a gap", "database", s.key.database,
			"tag", s.key.name, "first", last+1, "last", r.High)
		s.client.cfg.tell(Event{Kind: EventGap})
	}
	return err
}
