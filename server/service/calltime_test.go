package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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

// TestAProposalNeedsNoTimer of the call, unless the call has waited before.
func TestAProposalNeedsNoTimer(t *testing.T) {
	h := hanging{asked: make(chan context.Context, 1)}
	c, callers := &calls{timeout: time.Minute}, t.Context()
	within := c.within(callers)
	defer within.over()
	_, _ = untimed{h}.Propose(within, nil)
	if asked := <-h.asked; asked != callers || within.timed != nil {
		t.Error("a timer was made")
	}
	within.Done()
	_, _ = untimed{h}.Propose(within, nil)
	if asked := <-h.asked; asked != context.Context(within) {
		t.Error("a call that waited may wait again for as long")
	}
}

// TestTheTimeOfACall ends with its caller's, and is one time for all who look.
func TestTheTimeOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{timeout: time.Minute}
		for name, tt := range map[string]struct {
			after time.Duration
			want  error
		}{"in time": {time.Minute - 1, nil}, "over": {time.Minute, context.DeadlineExceeded}} {
			within := c.within(t.Context())
			defer within.over()
			time.Sleep(tt.after)
			if err := within.Err(); err != tt.want {
				t.Errorf("%s: %v", name, err)
			}
			child, cancel := context.WithCancel(within)
			defer cancel()
			if err := child.Err(); err != tt.want {
				t.Errorf("%s, of a context made of it: %v", name, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		sooner, later := c.within(ctx), c.within(t.Context())
		defer sooner.over()
		defer later.over()
		<-sooner.Done()
		if end, _ := sooner.Deadline(); !time.Now().Equal(end) || sooner.Err() != context.DeadlineExceeded || later.Err() != nil {
			t.Errorf("%v, %v", sooner.Err(), later.Err())
		}
	})
}
