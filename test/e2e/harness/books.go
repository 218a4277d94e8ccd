package harness

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// books is the series of the traffic. Its numbers stay with their keys.
const books = "books"

// bookkeeper makes a caller that takes numbers for documents through a node, and ends
// them. Each document is that of several callers, so most calls are repeats of others.
func bookkeeper(n *Node) func(*worker) history.Outcome {
	defined := false
	return func(w *worker) history.Outcome {
		if defined = defined || w.define(n); !defined {
			return history.Failed
		}
		op := history.Op{Kind: history.Take, Name: books, ID: fmt.Sprintf("doc-%d", w.Traffic.run.documents.Add(1)/5)}
		if w.random.IntN(4) == 0 {
			op.Kind = history.Find
		}
		got := w.issue(op, nil)
		if op.Kind == history.Find || got.Outcome != history.OK {
			return settled(got)
		}
		op.Kind, op.Tag = history.End, "confirmed"
		if w.random.IntN(5) == 0 {
			op.Tag = "voided"
		}
		return settled(w.issue(op, nil))
	}
}

// define defines the series of the books, if the cluster knows yet what that is.
func (w *worker) define(n *Node) bool {
	ctx, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	_, err := n.Series.DefineSeries(ctx, &idnodev1.DefineSeriesRequest{
		Database: w.database, Name: books, Definition: &idnodev1.SeriesDefinition{Format: "B{number}"},
	})
	return err == nil
}

// keep makes a call on the books.
func (d plainDoor) keep(ctx context.Context, op *history.Op) error {
	keys := []*idnodev1.NumberOf{{Key: op.ID}}
	switch series := d.n.Series; {
	case op.Kind == history.Take:
		r, err := series.TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Database: op.Database, Series: op.Name, Keys: []string{op.ID}})
		numbered(op, r.GetNumbers()...)
		return err
	case op.Kind == history.Find:
		r, err := series.WhoHas(ctx, &idnodev1.WhoHasRequest{Database: op.Database, Series: op.Name, By: &idnodev1.WhoHasRequest_Key{Key: op.ID}})
		if err == nil {
			numbered(op, r.GetNumber())
		}
		return err
	case op.Tag == "voided":
		r, err := series.VoidNumbers(ctx, &idnodev1.VoidNumbersRequest{Database: op.Database, Series: op.Name, Keys: keys, Reason: "torn"})
		numbered(op, r.GetNumbers()...)
		return err
	default:
		r, err := series.ConfirmNumbers(ctx, &idnodev1.ConfirmNumbersRequest{Database: op.Database, Series: op.Name, Keys: keys})
		numbered(op, r.GetNumbers()...)
		return err
	}
}

// numbered fills in the number of a key; there may be none.
func numbered(op *history.Op, numbers ...*idnodev1.SeriesNumber) {
	for _, n := range numbers {
		op.Result, op.Tag = n.GetNumber(), strings.ToLower(strings.TrimPrefix(n.GetState().String(), "NUMBER_STATE_"))
	}
}
