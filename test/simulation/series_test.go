package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// The numbers of books stay with their keys, which the history is judged by. Those of
// tills change hands when they are released or expire: there the states of all nodes are
// compared, and each series is verified. The drafts are defined anew again and again.
const books, tills, drafts = "books", "tills", "drafts"

// before is the last number of the books from before the series.
const before = 42

// brief is how long the numbers of the tills are open.
var brief = durationpb.New(300 * time.Millisecond)

// bookkeepers are the callers that share the keys of the books.
const bookkeepers = 3

// keepBooks takes numbers for documents and ends them, until ctx ends.
func (w *world) keepBooks(ctx context.Context, number int) {
	c := newClient(w, number)
	defer c.close()
	c.define(ctx, books, &idnodev1.SeriesDefinition{Format: "INV-{number}", MaxOpen: 20}, &idnodev1.ScopeBegin{First: before + 1})
	c.define(ctx, tills, &idnodev1.SeriesDefinition{
		Format: "{till}-{number}", OnRelease: idnodev1.SeriesOnRelease_SERIES_ON_RELEASE_REUSE_LOWEST,
		OnExpiry: idnodev1.SeriesOnExpiry_SERIES_ON_EXPIRY_REUSE_LOWEST, ExpiresIn: brief, MaxOpen: 8,
	})
	for ctx.Err() == nil {
		switch n := c.random.IntN(10); {
		case n < 4:
			c.takeNumbers(ctx)
		case n < 7:
			c.endNumber(ctx)
		case n < 8:
			c.findNumber(ctx, pick(c.random, w.machines()...), c.document())
		case n < 9:
			c.useTill(ctx)
		default:
			c.draft(ctx)
		}
		sleep(ctx, time.Duration(c.random.Int64N(int64(w.plan.pause))))
	}
}

func (c *client) series(s *server) idnodev1.SeriesServiceClient {
	return idnodev1.NewSeriesServiceClient(c.conn(s))
}

// define defines a series.
func (c *client) define(ctx context.Context, name string, d *idnodev1.SeriesDefinition, begins ...*idnodev1.ScopeBegin) {
	for ctx.Err() == nil {
		got := c.once(ctx, pick(c.random, c.world.machines()...), history.Op{Kind: history.Other},
			func(ctx context.Context, s *server, _ *history.Op) error {
				_, err := c.series(s).DefineSeries(ctx, &idnodev1.DefineSeriesRequest{Name: name, Definition: d, Begins: begins})
				return err
			})
		if got.Outcome == history.OK {
			return
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

// document is one that the bookkeepers share.
func (c *client) document() string { return fmt.Sprintf("doc-%d", c.random.IntN(60)) }

// takeNumbers asks for the numbers of some documents at once. Each is an operation of the
// history, with the times of the call.
func (c *client) takeNumbers(ctx context.Context) {
	var keys []string
	for range 1 + c.random.IntN(3) {
		if key := c.document(); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	var numbers []*idnodev1.SeriesNumber
	ops := make([]history.Op, len(keys))
	begin := c.world.history.now()
	got := c.once(ctx, pick(c.random, c.world.machines()...), history.Op{Kind: history.Other},
		func(ctx context.Context, s *server, _ *history.Op) error {
			r, err := c.series(s).TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Series: books, Keys: keys})
			numbers = r.GetNumbers()
			return err
		})
	for i, key := range keys {
		ops[i] = history.Op{
			Kind: history.Take, Client: got.Client, Node: got.Node, Name: books, ID: key, Call: begin,
			Outcome: got.Outcome, Code: got.Code,
		}
		if got.Outcome == history.OK {
			c.is(&ops[i], numbers[i])
		}
		c.world.history.add(ops[i])
	}
}

// is fills in what a key has. In the history the numbers of the books begin at 1.
func (c *client) is(op *history.Op, n *idnodev1.SeriesNumber) {
	op.Result, op.Tag = n.GetNumber()-before, strings.ToLower(strings.TrimPrefix(n.GetState().String(), "NUMBER_STATE_"))
	if n.GetKey() != op.ID || n.GetText() != fmt.Sprintf("INV-%d", n.GetNumber()) {
		c.world.found("asked for %s, got %v", op.ID, n)
	}
}

// endNumber confirms or voids the number of a document, if it has one.
func (c *client) endNumber(ctx context.Context) {
	op := history.Op{Kind: history.End, Name: books, ID: c.document(), Tag: pick(c.random, "confirmed", "confirmed", "voided")}
	keys := []*idnodev1.NumberOf{{Key: op.ID}}
	c.once(ctx, pick(c.random, c.world.machines()...), op, func(ctx context.Context, s *server, op *history.Op) error {
		var numbers []*idnodev1.SeriesNumber
		var err error
		if op.Tag == "voided" {
			r, failed := c.series(s).VoidNumbers(ctx, &idnodev1.VoidNumbersRequest{Series: books, Keys: keys, Reason: "torn"})
			numbers, err = r.GetNumbers(), failed
		} else {
			r, failed := c.series(s).ConfirmNumbers(ctx, &idnodev1.ConfirmNumbersRequest{Series: books, Keys: keys})
			numbers, err = r.GetNumbers(), failed
		}
		if err == nil {
			c.is(op, numbers[0])
		}
		return err
	})
}

// findNumber reads the number of a document.
func (c *client) findNumber(ctx context.Context, s *server, key string) {
	c.once(ctx, s, history.Op{Kind: history.Find, Name: books, ID: key}, func(ctx context.Context, s *server, op *history.Op) error {
		r, err := c.series(s).WhoHas(ctx, &idnodev1.WhoHasRequest{Series: books, By: &idnodev1.WhoHasRequest_Key{Key: key}})
		if err == nil {
			c.is(op, r.GetNumber())
		}
		return err
	})
}

// useTill takes numbers that expire, ends some, enters one, or allots a range.
func (c *client) useTill(ctx context.Context) {
	key := fmt.Sprintf("sale-%d", c.random.IntN(20))
	ends := &idnodev1.NumberOf{Key: key, Number: c.random.Int64N(4)}
	c.once(ctx, pick(c.random, c.world.machines()...), history.Op{Kind: history.Other},
		func(ctx context.Context, s *server, _ *history.Op) (err error) {
			till := map[string]string{"till": pick(c.random, "1", "2")}
			switch c.random.IntN(7) {
			case 6:
				_, err = c.series(s).TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{
					Series: tills, Keys: []string{key}, Values: till, Number: 1 + c.random.Int64N(60), Because: "by hand",
				})
			case 5:
				_, err = c.series(s).AllotNumbers(ctx, c.allotment())
			case 0:
				_, err = c.series(s).ReleaseNumbers(ctx, &idnodev1.ReleaseNumbersRequest{Series: tills, Keys: []*idnodev1.NumberOf{ends}})
			case 1:
				_, err = c.series(s).ConfirmNumbers(ctx, &idnodev1.ConfirmNumbersRequest{Series: tills, Keys: []*idnodev1.NumberOf{ends}})
			default:
				_, err = c.series(s).TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Series: tills, Keys: []string{key}, Values: till})
			}
			return err
		})
}

// allotment is a range of a till, to be allotted or taken back. Few of them are above all numbers of the till.
func (c *client) allotment() *idnodev1.AllotNumbersRequest {
	from := 1 + 5*c.random.Int64N(100)
	return &idnodev1.AllotNumbersRequest{
		Series: tills, Scope: []string{pick(c.random, "1", "2")}, Withdraw: c.random.IntN(3) == 0,
		Allotment: &idnodev1.Allotment{From: from, To: from + 4, Note: "range"},
	}
}

// draft defines the series of drafts at one node, and takes a number at another, which may not
// have heard of it.
func (c *client) draft(ctx context.Context) {
	c.once(ctx, pick(c.random, c.world.machines()...), history.Op{Kind: history.Other}, c.defineDrafts)
	key := fmt.Sprintf("draft-%d", c.random.IntN(20))
	c.once(ctx, pick(c.random, c.world.machines()...), history.Op{Kind: history.Other},
		func(ctx context.Context, s *server, _ *history.Op) error {
			r, err := c.series(s).TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{
				Series: drafts, Keys: []string{key}, Values: map[string]string{"desk": "d", "till": "t"},
			})
			for _, n := range r.GetNumbers() {
				if text := n.GetText(); !strings.HasPrefix(text, "A-d-t-") && !strings.HasPrefix(text, "B-t-d-") {
					c.world.found("the draft of the desk d and the till t is %s", text)
				}
			}
			return err
		})
}

// defineDrafts deletes the series of drafts, or defines it with its values in any order.
func (c *client) defineDrafts(ctx context.Context, s *server, _ *history.Op) (err error) {
	was, _ := c.series(s).GetSeries(ctx, &idnodev1.GetSeriesRequest{Name: drafts}) // Nothing if there is none.
	version := was.GetSeries().GetVersion()
	if version > 0 && c.random.IntN(4) == 0 {
		_, err = c.series(s).DeleteSeries(ctx, &idnodev1.DeleteSeriesRequest{Name: drafts, ExpectedVersion: version})
		return err
	}
	d := &idnodev1.SeriesDefinition{Format: pick(c.random, "A-{desk}-{till}-{number}", "B-{till}-{desk}-{number}")}
	_, err = c.series(s).DefineSeries(ctx, &idnodev1.DefineSeriesRequest{Name: drafts, Definition: d, ExpectedVersion: version})
	return err
}

// auditBooks compares the numbers of the books on each node with what callers were told,
// once the nodes have agreed.
func (w *world) auditBooks(c *client) {
	for _, s := range w.machines() {
		ctx, cancel := context.WithTimeout(w.ctx, stateLimit)
		w.audit(ctx, c, s)
		cancel()
	}
}

func (w *world) audit(ctx context.Context, c *client, s *server) {
	for _, name := range []string{books, tills} {
		c.once(ctx, s, history.Op{Kind: history.Other}, func(ctx context.Context, s *server, _ *history.Op) error {
			r, err := c.series(s).VerifySeries(ctx, &idnodev1.VerifySeriesRequest{Series: name})
			if err == nil && !r.GetOk() && r.GetNextPageToken() == "" {
				w.found("node %s: number %d of %v of %s %s", s.tag(), r.GetNumber(), r.GetScope(), name, r.GetDetail())
			}
			return err
		})
	}
	var listed []*idnodev1.SeriesNumber
	got := c.once(ctx, s, history.Op{Kind: history.Other}, func(ctx context.Context, s *server, _ *history.Op) error {
		r, err := c.series(s).ListNumbers(ctx, &idnodev1.ListNumbersRequest{Series: books, PageSize: 1000})
		listed = r.GetNumbers()
		return err
	})
	for i, n := range listed {
		if n.GetNumber() != int64(before+i+1) {
			w.found("node %s lists number %d behind number %d", s.tag(), n.GetNumber(), before+i)
		}
		op := history.Op{Kind: history.Find, Client: got.Client, Node: got.Node, Name: books, ID: n.GetKey(), Call: got.Call, Outcome: history.OK}
		c.is(&op, n)
		w.history.add(op)
	}
}
