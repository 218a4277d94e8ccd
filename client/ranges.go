package client

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// Range is a HiLo range reserved for the caller: its ids are Prefix + number +
// "-" + NodeTag, or Prefix + number if that is empty. Prefix and NodeTag belong
// to these numbers alone.
type Range struct {
	Prefix  string
	NodeTag string
	// Low and High are the first and the last number.
	Low, High int64
	// Size is the size granted, which decides about the next one; the range can
	// be a little longer.
	Size int64
	// At is the cluster's time of the range.
	At time.Time
	// FromReserve says that a node gave the range without the cluster, from numbers that
	// were granted to it before. They may lie below those of the last range.
	FromReserve bool
	// Token proves ownership when the range is returned.
	Token []byte
}

// RangeRequest says what range is wanted. The zero value asks for a first one.
type RangeRequest struct {
	// Size is the size wanted, 1 to 1,048,576; 0 lets the cluster decide by use,
	// for which it needs the next two.
	Size int64
	// LastSize and LastAt are Size and At of the last range.
	LastSize int64
	LastAt   time.Time
	// LastMax is the highest number known to be taken: the range begins above, unless
	// it is from a reserve.
	LastMax int64
}

// NextRange reserves the next range of a collection's tag. Most programs are
// better off with HiLo, which does so when it is time.
func (c *Client) NextRange(ctx context.Context, tag string, want RangeRequest, opts ...Option) (Range, error) {
	o := c.options(opts)
	req := &idnodev1.NextRangeRequest{
		Database: o.database, Tag: tag, Separator: o.separator, Size: want.Size,
		LastSize: want.LastSize, LastMax: want.LastMax, Label: c.cfg.Label, RequestId: o.newRequestID(),
	}
	if !want.LastAt.IsZero() {
		req.LastRangeAt = timestamppb.New(want.LastAt)
	}
	r, err := once(ctx, c, o, idnodev1.IdsServiceClient.NextRange, req)
	if err != nil {
		return Range{}, err
	}
	return Range{
		Prefix: r.GetPrefix(), NodeTag: r.GetNodeTag(), Low: r.GetLow(), High: r.GetHigh(),
		Size: r.GetSize(), At: r.GetRangeAt().AsTime(), FromReserve: r.GetFromReserve(), Token: r.GetToken(),
	}, nil
}

// ReturnRange gives the numbers of a range above last back; last is Low-1 if
// none was used. It reports false if the cluster did not take them back, because
// the range is not the newest one any more: then they stay a hole.
func (c *Client) ReturnRange(ctx context.Context, tag string, r Range, last int64, opts ...Option) (bool, error) {
	o := c.options(opts)
	req := &idnodev1.ReturnRangeRequest{
		Database: o.database, Tag: tag, Low: r.Low, High: r.High, Last: last, Token: r.Token, RequestId: o.newRequestID(),
	}
	got, err := once(ctx, c, o, idnodev1.IdsServiceClient.ReturnRange, req)
	return got.GetReturned(), err
}

// GetHiLo reads the highest number reserved of a tag. The error is ErrNotFound
// if none ever was.
func (c *Client) GetHiLo(ctx context.Context, tag string, opts ...Option) (int64, error) {
	o := c.options(opts)
	r, err := ask(ctx, c, idnodev1.IdsServiceClient.GetHiLo, &idnodev1.GetHiLoRequest{
		Database: o.database, Tag: tag, Consistency: o.consistency,
	})
	return r.GetHilo().GetMax(), err
}

// RangeState is what the cluster knows of a number of a tag.
type RangeState string

// The states of a number.
const (
	// RangeOutstanding: it is in a range that a caller got.
	RangeOutstanding RangeState = "outstanding"
	// RangeReserved: it is in a range that a node got for its reserve. Whether the node
	// gave the number to a caller since, the cluster does not know.
	RangeReserved RangeState = "reserved"
	// RangeNotRemembered: it is taken, and in no range that the cluster remembers.
	RangeNotRemembered RangeState = "not remembered"
	// RangeNotIssued: it was never issued, or came back unused.
	RangeNotIssued RangeState = "not issued"
)

var rangeStates = map[idnodev1.RangeState]RangeState{
	idnodev1.RangeState_RANGE_STATE_OUTSTANDING: RangeOutstanding, idnodev1.RangeState_RANGE_STATE_RESERVED: RangeReserved,
	idnodev1.RangeState_RANGE_STATE_NOT_REMEMBERED: RangeNotRemembered, idnodev1.RangeState_RANGE_STATE_NOT_ISSUED: RangeNotIssued,
}

// RangeHolder says who got the range that a number is in.
type RangeHolder struct {
	State RangeState
	// Low and High are those of the range; 0 if the number is in none.
	Low, High int64
	// Label is what the caller called itself, see Config.Label; Principal is the name in
	// its certificate.
	Label, Principal string
	// NodeTag is that of the node that served the caller, or that has the range in its
	// reserve.
	NodeTag string
	// IssuedAt is the cluster's time of the range, to the second; zero if that and the
	// caller are not remembered.
	IssuedAt time.Time
}

// WhoHolds finds out who got the range of a tag that a number is in. The cluster remembers
// the newest four ranges of a tag that can still be given back. The error is ErrNotFound
// if the tag was never used.
func (c *Client) WhoHolds(ctx context.Context, tag string, number int64, opts ...Option) (RangeHolder, error) {
	o := c.options(opts)
	r, err := ask(ctx, c, idnodev1.IdsServiceClient.WhoHolds, &idnodev1.WhoHoldsRequest{
		Database: o.database, Tag: tag, Number: number, Consistency: o.consistency,
	})
	if err != nil {
		return RangeHolder{}, err
	}
	h := RangeHolder{
		State: rangeStates[r.GetState()], Low: r.GetLow(), High: r.GetHigh(),
		Label: r.GetHolder().GetLabel(), Principal: r.GetHolder().GetPrincipal(), NodeTag: r.GetHolder().GetNodeTag(),
	}
	if at := r.GetHolder().GetIssuedAt(); at != nil {
		h.IssuedAt = at.AsTime()
	}
	return h, nil
}

// SetHiLo raises the highest number reserved of a tag to max, if it is still
// expected (0 for an unknown tag); otherwise the error is ErrConcurrency.
func (c *Client) SetHiLo(ctx context.Context, tag string, max, expected int64, opts ...Option) error {
	o := c.options(opts)
	req := &idnodev1.SetHiLoRequest{Database: o.database, Tag: tag, Max: max, Expected: expected, RequestId: o.newRequestID()}
	_, err := once(ctx, c, o, idnodev1.IdsServiceClient.SetHiLo, req)
	return err
}

// HiLos lists the HiLo counters whose folded tags begin with prefix, in order.
// It ends with the first error.
func (c *Client) HiLos(ctx context.Context, prefix string, opts ...Option) iter.Seq2[Counter, error] {
	o := c.options(opts)
	return pages(func(token string) ([]Counter, string, error) {
		r, err := ask(ctx, c, idnodev1.IdsServiceClient.ListHiLo, &idnodev1.ListHiLoRequest{
			Database: o.database, Prefix: prefix, PageSize: pageSize, PageToken: token, Consistency: o.consistency,
		})
		var page []Counter
		for _, h := range r.GetHilos() {
			page = append(page, Counter{Name: h.GetTag(), Value: h.GetMax()})
		}
		return page, r.GetNextPageToken(), err
	})
}
