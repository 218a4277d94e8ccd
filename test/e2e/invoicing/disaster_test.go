package invoicing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// untilHalf has the programs write half of the invoices, while leaders are killed and cut
// off. It takes a backup at a third of them, and returns how many faults there were.
func (o *office) untilHalf(t *testing.T, file string, count int64) (faults int) {
	ctx, stop := context.WithCancel(t.Context())
	ended := o.start(ctx, t)
	half := make(chan struct{})
	go func() {
		defer close(half)
		o.reach(t, count/3)
		o.idnode(t, nil, "backup", file)
		o.reach(t, count/2)
	}()
	faults = trouble(t, o.cluster, half)
	for _, n := range o.cluster.Nodes {
		n.Process.Kill()
	}
	stop() // In the middle of whatever the programs do.
	<-ended
	return faults
}

// reach waits until so many invoices are confirmed.
func (o *office) reach(t *testing.T, confirmed int64) {
	for t.Context().Err() == nil {
		for _, n := range o.cluster.Nodes {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			res, err := n.Series.ReportSeries(ctx,
				&idnodev1.ReportSeriesRequest{Series: "invoices", Consistency: idnodev1.Consistency_CONSISTENCY_STALE})
			cancel()
			if err == nil && len(res.GetScopes()) > 0 && res.GetScopes()[0].GetConfirmed() >= confirmed {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// loseAll removes what the nodes have on disk, and restores the backup into a new cluster.
// From then on the books are the truth, from which it learns what it lacks.
func (o *office) loseAll(t *testing.T, file string) {
	for _, n := range o.cluster.Nodes {
		if err := os.RemoveAll(n.DataDir); err != nil {
			t.Fatal(err)
		}
	}
	o.cluster = harness.NewCluster(t, harness.Config{})
	for i, n := range o.cluster.Nodes {
		n.Tag, n.DataDir = string("DEF"[i]), n.DataDir+"-new"
	}
	for _, n := range o.cluster.Nodes {
		n.Start(t)
	}
	o.cluster.WaitReady(t)
	o.idnode(t, nil, "restore", file, "--skip-ahead", "1000000", "--yes")
	o.reconcile(t)
}

// reconcile does what the README of the program says.
func (o *office) reconcile(t *testing.T) {
	last := strings.TrimSpace(o.ask(t, nil, "last"))
	o.idnode(t, nil, "series", "resume", "invoices", "--last", "-="+last, "--yes")
	var numbers bytes.Buffer
	unknown := 0
	for line := range strings.Lines(o.idnode(t, nil, "series", "report", "invoices", "--state", "unknown", "-o", "json")) {
		var n struct{ Number string }
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&numbers, n.Number)
		unknown++
	}
	if unknown == 0 {
		t.Error("no number is unknown, so the disaster was none")
	}
	o.idnode(t, strings.NewReader(o.ask(t, &numbers, "holders")), "series", "reconcile", "--yes", "invoices", "-", "--file", "-")
	t.Logf("all nodes were lost; %d numbers up to %s were unknown", unknown, last)
}

// idnode runs a command line of idnode that must succeed.
func (o *office) idnode(t *testing.T, in io.Reader, args ...string) string {
	for _, address := range o.endpoints() {
		args = append(args, "--endpoint", address)
	}
	cmd := harness.Command(t, args...)
	var out, failed strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &failed
	if err := cmd.Run(); err != nil {
		t.Errorf("idnode %v: %v: %s", args, err, failed.String())
	}
	return out.String()
}

// ask asks the program about its books.
func (o *office) ask(t *testing.T, in io.Reader, args ...string) string {
	cmd := o.command(t.Context(), args...)
	cmd.Stdin = in
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %v", args, err)
	}
	return string(out)
}
