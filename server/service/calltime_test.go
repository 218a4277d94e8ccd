package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

// hanging is a cluster that answers nothing before the call's time is over.
type hanging struct{ asked chan context.Context }

func (h hanging) Linearize(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (h hanging) Propose(ctx context.Context, _ []byte) ([]byte, error) {
	h.asked <- ctx
	return nil, errors.New("not today")
}

func (h hanging) ProposeAll(ctx context.Context, operations [][]byte) ([][]byte, []error) {
	panic("not asked here")
}

// bounded fails the test if a read has no end: only the Proposer ends by itself.
type bounded struct{ t *testing.T }

func (b bounded) Linearize(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		b.t.Error("a read without an end")
	}
	return nil
}

// TestReadsEndInTime, whatever their callers allow.
func TestReadsEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, newWorld(t), func(c *Config) { c.Linearizer = hanging{} })
		for name, read := range map[string]func(context.Context) error{
			"a list": func(ctx context.Context) error {
				_, err := n.ListIdentities(ctx, &idnodev1.ListIdentitiesRequest{Consistency: linearizable})
				return err
			},
			"a report": func(ctx context.Context) error {
				_, err := n.ReportSeries(ctx, &idnodev1.ReportSeriesRequest{Series: "s", Consistency: linearizable})
				return err
			},
			"a preview": func(ctx context.Context) error {
				_, err := n.DefineSeries(ctx, &idnodev1.DefineSeriesRequest{Name: "s", DryRun: true})
				return err
			},
			"a text": func(ctx context.Context) error {
				_, err := n.FormatNumber(ctx, &idnodev1.FormatNumberRequest{Of: &idnodev1.FormatNumberRequest_Series{Series: "s"}, Number: 1})
				return err
			},
		} {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			err := read(ctx)
			cancel()
			if took := time.Since(start); err == nil || took != DefaultCallTimeout {
				t.Errorf("%s took %s: %v", name, took, err)
			}
		}
	})
}

// TestAProposalNeedsNoTimer of the call: the Proposer bounds it. A call that may wait for something else too
// has one time for all.
func TestAProposalNeedsNoTimer(t *testing.T) {
	h := hanging{asked: make(chan context.Context, 1)}
	n, callers := newNode(t, newWorld(t), func(c *Config) { c.Proposer, c.Linearizer = h, bounded{t} }), t.Context()
	for name, tt := range map[string]struct {
		call  func() error
		timed bool
	}{
		"identity": {call: func() error {
			_, err := n.NextIdentity(callers, &idnodev1.NextIdentityRequest{Name: "users"})
			return err
		}},
		"template": {call: func() error {
			_, err := n.Generate(callers, &idnodev1.GenerateRequest{Template: "users|"})
			return err
		}},
		"range": {call: func() error {
			_, err := n.NextRange(callers, &idnodev1.NextRangeRequest{Tag: "users"})
			return err
		}},
		"returned range": {call: func() error {
			_, err := n.ReturnRange(callers, &idnodev1.ReturnRangeRequest{Tag: "users", Low: 1, High: 9, Last: proto.Int64(3), WithoutToken: true})
			return err
		}},
		"range returned by its last number": {call: func() error {
			_, err := n.ReturnRangeByHigh(callers, &idnodev1.ReturnRangeRequest{Tag: "users", High: 9, Last: proto.Int64(3)})
			return err
		}},
		"claim": {call: func() error {
			_, err := n.Claim(callers, &idnodev1.ClaimRequest{Id: "users/1"})
			return err
		}},
		"released claim": {call: func() error {
			_, err := n.Release(callers, &idnodev1.ReleaseRequest{Id: "users/1"})
			return err
		}},
		"worker": {timed: true, call: func() error {
			_, err := n.AcquireWorker(callers, &idnodev1.AcquireWorkerRequest{Pool: "ids", Holder: "shop"})
			return err
		}},
	} {
		err := tt.call()
		select {
		case asked := <-h.asked:
			if (asked != callers) != tt.timed {
				t.Errorf("%s: its proposal has the context %v", name, asked)
			}
		default:
			t.Errorf("%s: nothing was proposed: %v", name, err)
		}
	}
}
