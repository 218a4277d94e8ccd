package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestASeriesHasNoHole: while leaders are killed and cut off, callers take numbers for their
// documents at any node, confirm or void them, and make each call again until it is
// answered. Every document has one number, the numbers are 1 to their count, and so it is
// after all nodes were killed at once.
func TestASeriesHasNoHole(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	defineSeries(t, c.Nodes[0], "invoices", "INV-{number:9}")
	books := &documents{c: c, numbers: map[string]string{}, voided: map[string]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for caller := range 6 {
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				books.store(t, fmt.Sprintf("orders/%d-%d", caller, n), n)
			}
		})
	}
	for range 2 {
		books.more(t, 60)
		leader := c.Leader(t)
		leader.Process.Kill()
		books.more(t, 60)
		leader.Start(t)
		c.WaitReady(t)
		c.Isolate(c.Leader(t))
		books.more(t, 60)
		c.Heal()
		c.WaitReady(t)
	}
	stop()
	callers.Wait()
	c.Agree(t)
	books.audit(t, c.Nodes[1])
	for _, n := range c.Nodes {
		n.Process.Kill()
	}
	for _, n := range c.Nodes {
		n.Start(t)
	}
	c.WaitReady(t)
	books.audit(t, c.Nodes[2])
}

// defineSeries defines a series.
func defineSeries(t *testing.T, n *harness.Node, name, format string) {
	t.Helper()
	_, err := n.Series.DefineSeries(t.Context(),
		&idnodev1.DefineSeriesRequest{Name: name, Definition: &idnodev1.SeriesDefinition{Format: format}})
	if err != nil {
		t.Fatal(err)
	}
}

// documents are what callers have stored, with the texts of their numbers.
type documents struct {
	c       *harness.Cluster
	mu      sync.Mutex
	numbers map[string]string
	voided  map[string]bool
}

// store takes the number of a document, and ends it. What was begun is finished.
func (d *documents) store(t *testing.T, key string, n int) {
	var text string
	d.insist(t, n, func(ctx context.Context, node *harness.Node) error {
		res, err := node.Series.TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Series: "invoices", Keys: []string{key}})
		if err == nil {
			text = res.GetNumbers()[0].GetText()
		}
		return err
	})
	keys, void := []*idnodev1.NumberOf{{Key: key}}, n%5 == 0
	d.insist(t, n+1, func(ctx context.Context, node *harness.Node) (err error) {
		if void {
			_, err = node.Series.VoidNumbers(ctx, &idnodev1.VoidNumbersRequest{Series: "invoices", Keys: keys, Reason: "torn"})
		} else {
			_, err = node.Series.ConfirmNumbers(ctx, &idnodev1.ConfirmNumbersRequest{Series: "invoices", Keys: keys})
		}
		return err
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.numbers[key], d.voided[key] = text, void
}

// insist makes a call at one node after the other until it is answered.
func (d *documents) insist(t *testing.T, first int, call func(context.Context, *harness.Node) error) {
	for try := first; try < first+1000; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		err := call(ctx, d.c.Nodes[try%len(d.c.Nodes)])
		if err != nil {
			<-time.After(10 * time.Millisecond) // A node that is gone refuses at once.
		}
		cancel()
		if err == nil {
			return
		}
	}
	t.Error("a call was never answered")
}

// more waits until so many more documents are stored.
func (d *documents) more(t *testing.T, count int) {
	t.Helper()
	stored := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.numbers)
	}
	want := stored() + count
	harness.Eventually(t, 40*time.Second, "more documents", func(context.Context) error {
		if got := stored(); got < want {
			return fmt.Errorf("%d documents, want %d", got, want)
		}
		return nil
	})
}

// audit compares all numbers of the series with those of the documents.
func (d *documents) audit(t *testing.T, n *harness.Node) {
	t.Helper()
	n.VerifySeries(t, "invoices")
	req := &idnodev1.ListNumbersRequest{Series: "invoices", PageSize: 50}
	var all []*idnodev1.SeriesNumber
	for {
		page, err := n.Series.ListNumbers(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.GetNumbers()...)
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			break
		}
	}
	if len(all) != len(d.numbers) {
		t.Errorf("%d numbers of %d documents", len(all), len(d.numbers))
	}
	for i, got := range all {
		want := idnodev1.NumberState_NUMBER_STATE_CONFIRMED
		if d.voided[got.GetKey()] {
			want = idnodev1.NumberState_NUMBER_STATE_VOIDED
		}
		if got.GetNumber() != int64(i+1) || got.GetText() != d.numbers[got.GetKey()] || got.GetState() != want {
			t.Fatalf("number %d is %v, its document has %q", i+1, got, d.numbers[got.GetKey()])
		}
	}
	t.Logf("%d documents, each with its number", len(all))
}

// TestANodeWithoutAQuorumGivesNoNumbers, also not from a reserve, and reads what it knows.
func TestANodeWithoutAQuorumGivesNoNumbers(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	defineSeries(t, c.Nodes[0], "invoices", "INV-{number:9}")
	take := &idnodev1.TakeNumbersRequest{Series: "invoices", Keys: []string{"a"}}
	if _, err := c.Nodes[1].Series.TakeNumbers(t.Context(), take); err != nil {
		t.Fatal(err)
	}
	c.Agree(t)
	lonely := c.Nodes[2]
	c.Isolate(lonely)
	take.Keys = []string{"b"}
	if _, err := lonely.Series.TakeNumbers(t.Context(),
		take); !slices.Contains([]string{"NO_QUORUM", "OUTCOME_UNKNOWN"}, harness.Reason(err)) {
		t.Errorf("a node that is cut off gave a number, or refused with %v", err)
	}
	who := &idnodev1.WhoHasRequest{
		Series: "invoices", By: &idnodev1.WhoHasRequest_Key{Key: "a"},
		Consistency: idnodev1.Consistency_CONSISTENCY_STALE,
	}
	if res, err := lonely.Series.WhoHas(t.Context(), who); err != nil || res.GetNumber().GetNumber() != 1 {
		t.Errorf("%v, %v", res, err)
	}
	c.Heal()
	c.WaitReady(t)
	if res, err := lonely.Series.TakeNumbers(t.Context(), take); err != nil || res.GetNumbers()[0].GetNumber() != 2 {
		t.Errorf("%v, %v", res, err)
	}
}
