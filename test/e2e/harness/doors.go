package harness

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	goclient "github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// door is one way into the cluster. do makes the call that op asks for, and fills
// in its answer; a range's token is written to token, and a return's read from it.
type door interface {
	// tag is that of the node asked, or empty if it is not known.
	tag() string
	do(ctx context.Context, op *history.Op, token *string) error
}

// plainDoor is one node over plain gRPC, without retries.
type plainDoor struct{ n *Node }

func (d plainDoor) tag() string { return d.n.Tag }

func (d plainDoor) do(ctx context.Context, op *history.Op, token *string) error {
	switch ids := d.n.Ids; op.Kind {
	case history.Next:
		r, err := ids.NextIdentity(ctx, nextRequest(op))
		took(op, r.GetBlocks())
		return err
	case history.Seed:
		r, err := ids.SeedIdentity(ctx, seedRequest(op))
		op.Result = r.GetValue()
		return err
	case history.Get:
		r, err := ids.GetIdentity(ctx, &idnodev1.GetIdentityRequest{Database: op.Database, Name: op.Name})
		op.Result = r.GetIdentity().GetValue()
		return err
	case history.Delete:
		r, err := ids.DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{
			Database: op.Database, Name: op.Name, Forget: op.Forget, RequestId: requestID(op),
		})
		op.Result = r.GetValue()
		return err
	case history.Claim:
		_, err := ids.Claim(ctx, claimRequest(op))
		return err
	case history.Release:
		_, err := ids.Release(ctx, releaseRequest(op))
		return err
	case history.Range:
		r, err := ids.NextRange(ctx, rangeRequest(op))
		reserved(op, r, token)
		return err
	case history.Return:
		r, err := ids.ReturnRange(ctx, returnRequest(op, *token))
		returned(op, r)
		return err
	case history.Set:
		r, err := ids.SetHiLo(ctx, &idnodev1.SetHiLoRequest{
			Database: op.Database, Tag: op.Name, Max: op.Value, Expected: *op.Expected, RequestId: requestID(op),
		})
		op.Result = r.GetMax()
		return err
	case history.Take, history.End, history.Find:
		return d.keep(ctx, op)
	default: // Etag
		r, err := ids.Generate(ctx, etagRequest(op))
		generated(op, r)
		return err
	}
}

// clientDoor is the Go client, which retries by itself.
type clientDoor struct{ c *goclient.Client }

func (d clientDoor) tag() string { return "" }

func (d clientDoor) do(ctx context.Context, op *history.Op, token *string) (err error) {
	opts := []goclient.Option{goclient.WithDatabase(op.Database)}
	if op.Request != "" {
		opts = append(opts, goclient.WithRequestID(op.Request))
	}
	switch op.Kind {
	case history.Next:
		// By the same call as over plain gRPC, which a repeat there must be.
		var values []goclient.ValueBlock
		values, err = d.c.Identity(op.Name).NextN(ctx, int(op.Count), opts...)
		for _, v := range values {
			op.Blocks = append(op.Blocks, history.Block{First: v.First, Last: v.Last})
		}
	case history.Etag:
		var blocks []goclient.IDBlock
		blocks, err = d.c.NextBlocks(ctx, "users/", int(op.Count), opts...)
		for _, b := range blocks {
			op.Blocks = append(op.Blocks, history.Block{First: b.First, Last: b.Last})
			op.Tag = strings.TrimPrefix(b.Suffix, "-")
		}
	case history.Seed:
		if op.Force {
			opts = append(opts, goclient.WithForce())
		}
		if op.Expected != nil {
			opts = append(opts, goclient.WithExpected(*op.Expected))
		}
		op.Result, err = d.c.Identity(op.Name).Seed(ctx, op.Value, opts...)
	case history.Get:
		op.Result, err = d.c.Identity(op.Name).Get(ctx, opts...)
	case history.Delete:
		if op.Forget {
			opts = append(opts, goclient.WithForget())
		}
		op.Result, err = d.c.Identity(op.Name).Delete(ctx, opts...)
	case history.Set:
		err = d.c.SetHiLo(ctx, op.Name, op.Value, append(opts, goclient.WithExpected(*op.Expected))...)
		op.Result = op.Value // the client does not say
	case history.Claim:
		err = d.c.Claim(ctx, op.ID, opts...)
	case history.Release:
		err = d.c.Release(ctx, op.ID, opts...)
	case history.Range:
		var r goclient.Range
		r, err = d.c.NextRange(ctx, op.Name, goclient.RangeRequest{Size: op.Count}, opts...)
		op.Low, op.High, op.Tag, op.Reserve = r.Low, r.High, r.NodeTag, r.FromReserve
		if err == nil {
			*token = r.Token
		}
	case history.Return:
		r := goclient.Range{Low: op.Low, High: op.High, Token: *token}
		if op.Returned, err = d.c.ReturnRange(ctx, op.Name, r, op.Last, opts...); op.Returned {
			op.Result = op.Last // the client does not say
		}
	}
	return err
}

// outcomeOf says what is known of a call that ended with err, and its code: the
// reason, or that of gRPC where there is none.
func outcomeOf(kind history.Kind, err error) (history.Outcome, string) {
	if err == nil {
		return history.OK, ""
	}
	var of *goclient.Error
	code, reason, unknown := status.Code(err), Reason(err), false
	if errors.As(err, &of) {
		code, reason, unknown = of.Code, of.Reason, of.OutcomeUnknown
	}
	if reason == "" {
		reason = codeName(code)
	}
	switch {
	case unknown:
		return history.Unknown, reason
	case NeverSent(err):
		return history.Failed, "NO_ENDPOINT"
	case code == codes.NotFound && (kind == history.Get || kind == history.Release || kind == history.Delete):
		return history.Failed, "NOT_FOUND"
	case reason != codeName(code) && reason != "OUTCOME_UNKNOWN":
		return history.Failed, reason
	}
	return history.Unknown, reason
}

// codeName writes a gRPC code as its specification does.
func codeName(c codes.Code) string {
	var b strings.Builder
	for i, r := range c.String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
