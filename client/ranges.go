package client

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/generator"
	"github.com/idnode/idnode/client/idnodev1"
)

// Range is a HiLo range reserved for the caller: its ids are Prefix + number + "-" + NodeTag,
// or Prefix + number if NodeTag is empty.
type Range = generator.Range

// RangeRequest describes the wanted range. The zero value requests a first range.
type RangeRequest = generator.Request

// NextRange reserves the next range of a collection's tag. Most programs should use HiLo,
// which reserves ranges when they are needed.
func (c *Client) NextRange(ctx context.Context, tag string, want RangeRequest, opts ...Option) (Range, error) {
	o := c.options(opts, hasSeparator|hasRequestID)
	req := &idnodev1.NextRangeRequest{
		Database: o.database, Tag: tag, Separator: o.separator, Size: want.Size,
		LastSize: want.LastSize, LastMax: want.LastMax, Label: c.cfg.Label, RequestId: o.newRequestID(),
	}
	if !want.LastRangeAt.IsZero() {
		req.LastRangeAt = timestamppb.New(want.LastRangeAt)
	}
	r, err := invoke(ctx, c, o, counts, (*api).NextRange, req)
	if err != nil {
		return Range{}, err
	}
	return Range{
		Low: r.GetLow(), High: r.GetHigh(), Granted: r.GetSize(), Prefix: r.GetPrefix(), NodeTag: r.GetNodeTag(),
		At: r.GetRangeAt().AsTime(), FromReserve: r.GetFromReserve(), Token: r.GetToken(),
	}, nil
}

// ReturnRange gives the numbers of a range above last back; last is Low-1 if none was used. It
// returns false if the cluster did not take them back, because the range is no longer the
// newest: then they are a gap.
func (c *Client) ReturnRange(ctx context.Context, tag string, r Range, last int64, opts ...Option) (bool, error) {
	o := c.options(opts, hasRequestID)
	req := &idnodev1.ReturnRangeRequest{
		Database: o.database, Tag: tag, Low: r.Low, High: r.High, Last: &last, Token: r.Token, RequestId: o.newRequestID(),
	}
	got, err := invoke(ctx, c, o, counts, (*api).ReturnRange, req)
	return got.GetReturned(), err
}

// GetHiLo reads the highest reserved number of a tag. It fails with ErrNotFound if no range of
// the tag was ever reserved.
func (c *Client) GetHiLo(ctx context.Context, tag string, opts ...Option) (int64, error) {
	o := c.options(opts, isRead)
	r, err := invoke(ctx, c, o, reads, (*api).GetHiLo, &idnodev1.GetHiLoRequest{
		Database: o.database, Tag: tag, Consistency: o.consistency,
	})
	return r.GetHilo().GetMax(), err
}

// RangeState is the state of a number of a tag.
type RangeState string

// The states of a number.
const (
	// RangeOutstanding: the number is in a range of a caller.
	RangeOutstanding RangeState = "outstanding"
	// RangeReserved: the number is in a range of a node's reserve. The cluster does not know
	// whether the node has given the number to a caller.
	RangeReserved RangeState = "reserved"
	// RangeNotRemembered: the number is taken, and in no range that the cluster remembers.
	RangeNotRemembered RangeState = "not remembered"
	// RangeNotIssued: the number was never issued, or was returned unused.
	RangeNotIssued RangeState = "not issued"
)

var rangeStates = map[idnodev1.RangeState]RangeState{
	idnodev1.RangeState_RANGE_STATE_OUTSTANDING: RangeOutstanding, idnodev1.RangeState_RANGE_STATE_RESERVED: RangeReserved,
	idnodev1.RangeState_RANGE_STATE_NOT_REMEMBERED: RangeNotRemembered, idnodev1.RangeState_RANGE_STATE_NOT_ISSUED: RangeNotIssued,
}

// RangeHolder is the holder of the range of a number.
type RangeHolder struct {
	State RangeState
	// Low and High are the range; 0 if the number is in none.
	Low, High int64
	// Label is the caller's Config.Label; Principal is the name in its certificate.
	Label, Principal string
	// NodeTag is the tag of the node that served the caller, or that has the range in its
	// reserve.
	NodeTag string
	// IssuedAt is the cluster's time of the range, to the second; zero if the range is not
	// remembered.
	IssuedAt time.Time
}

// WhoHolds returns the holder of the range of a number. The cluster remembers the newest four
// ranges of a tag that can still be given back. The error is ErrNotFound if the tag was never
// used.
func (c *Client) WhoHolds(ctx context.Context, tag string, number int64, opts ...Option) (RangeHolder, error) {
	o := c.options(opts, isRead)
	r, err := invoke(ctx, c, o, reads, (*api).WhoHolds, &idnodev1.WhoHoldsRequest{
		Database: o.database, Tag: tag, Number: number, Consistency: o.consistency,
	})
	if err != nil {
		return RangeHolder{}, err
	}
	return RangeHolder{
		State: rangeStates[r.GetState()], Low: r.GetLow(), High: r.GetHigh(),
		Label: r.GetHolder().GetLabel(), Principal: r.GetHolder().GetPrincipal(), NodeTag: r.GetHolder().GetNodeTag(),
		IssuedAt: timeOf(r.GetHolder().GetIssuedAt()),
	}, nil
}

// SetHiLo raises the highest reserved number of a tag to max, if it is still that of WithExpected;
// otherwise the error is ErrConcurrency. Without WithExpected the tag must be unknown.
func (c *Client) SetHiLo(ctx context.Context, tag string, max int64, opts ...Option) error {
	o := c.options(opts, hasRequestID|hasExpected)
	req := &idnodev1.SetHiLoRequest{Database: o.database, Tag: tag, Max: max, RequestId: o.newRequestID()}
	if o.expected != nil {
		req.Expected = *o.expected
	}
	_, err := invoke(ctx, c, o, counts, (*api).SetHiLo, req)
	return err
}

// HiLos lists the HiLo counters whose folded tags begin with prefix, in order.
// It ends with the first error.
func (c *Client) HiLos(ctx context.Context, prefix string, opts ...Option) iter.Seq2[Counter, error] {
	o := c.options(opts, isRead)
	return pages(func(token string) ([]Counter, string, error) {
		r, err := invoke(ctx, c, o, reads, (*api).ListHiLo, &idnodev1.ListHiLoRequest{
			Database: o.database, Prefix: prefix, PageSize: pageSize, PageToken: token, Consistency: o.consistency,
		})
		var page []Counter
		for _, h := range r.GetHilos() {
			page = append(page, Counter{Name: h.GetTag(), Value: h.GetMax()})
		}
		return page, r.GetNextPageToken(), err
	})
}
