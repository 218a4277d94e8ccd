package disaster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestSeriesAfterADisaster: a restored series gives no number until somebody has looked
// into the books; the keys of the backup have their numbers, and the numbers that the
// backup lacks are given to nobody else.
func TestSeriesAfterADisaster(t *testing.T) {
	tier.Long(t)
	file := filepath.Join(t.TempDir(), "x.backup")
	old := harness.StartCluster(t, harness.Config{Direct: true})
	harness.Eventually(t, 20*time.Second, "a series", func(ctx context.Context) error {
		_, err := old.Nodes[0].Series.DefineSeries(ctx,
			&idnodev1.DefineSeriesRequest{Name: "invoices", Definition: &idnodev1.SeriesDefinition{Format: "{number:6}"}})
		return err
	})
	books := map[string]string{}
	take := func(n *harness.Node, keys ...string) error {
		res, err := n.Series.TakeNumbers(t.Context(), &idnodev1.TakeNumbersRequest{Series: "invoices", Keys: keys})
		for _, got := range res.GetNumbers() {
			if had, known := books[got.GetKey()]; known && had != got.GetText() {
				t.Errorf("%s has %s and %s", got.GetKey(), had, got.GetText())
			}
			books[got.GetKey()] = got.GetText()
		}
		return err
	}
	for i := range 300 {
		if err := take(old.Nodes[i%3], fmt.Sprintf("orders/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	// Of a series without a final number, all can be redefined, and its keys have no number then.
	confirm := &idnodev1.ConfirmNumbersRequest{Series: "invoices", Keys: []*idnodev1.NumberOf{{Key: "orders/0"}}}
	if _, err := old.Nodes[0].Series.ConfirmNumbers(t.Context(), confirm); err != nil {
		t.Fatal(err)
	}
	must(t, with(endpoints(old.Nodes...), "backup", file)...)
	if err := take(old.Nodes[1], "late/1", "late/2"); err != nil {
		t.Fatal(err)
	}
	for _, n := range old.Nodes {
		n.Process.Kill()
		if err := os.RemoveAll(n.DataDir); err != nil {
			t.Fatal(err)
		}
	}

	next := harness.NewCluster(t, harness.Config{Direct: true})
	for i, n := range next.Nodes {
		n.Tag, n.DataDir = string("DEF"[i]), n.DataDir+"-new"
	}
	for _, n := range next.Nodes {
		n.Start(t)
	}
	next.WaitReady(t)
	restore := with(endpoints(next.Nodes...), "restore", file, "--yes", "--skip-ahead", "1000")
	must(t, restore...)
	if shown := must(t, "backup", "inspect", file); !strings.Contains(shown, "1 series with 300 keys") {
		t.Errorf("the backup is shown as %s", shown)
	}
	if err := take(next.Nodes[0], "new/1"); harness.Reason(err) != "SERIES_SUSPENDED" {
		t.Fatalf("a restored series gave a number: %v", err)
	}
	last := []*idnodev1.ScopeInBooks{{Last: 302}}
	if _, err := next.Nodes[1].Series.ResumeSeries(t.Context(), &idnodev1.ResumeSeriesRequest{Series: "invoices", Books: last}); err != nil {
		t.Fatal(err)
	}
	must(t, restore...) // It went on, and goes on.
	if err := take(next.Nodes[2], "orders/0", "orders/299", "new/1", "new/2"); err != nil {
		t.Fatal(err)
	}
	if books["new/1"] != "000303" || books["new/2"] != "000304" {
		t.Errorf("the next numbers are %s and %s", books["new/1"], books["new/2"])
	}
	next.Nodes[0].VerifySeries(t, "invoices")
}
