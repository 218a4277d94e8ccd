package matrix

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/edge"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// slowLink is how many bytes a second come to a node that joins: its snapshot takes a few seconds
// by default, and more than a minute in the longer forms.
func slowLink() int {
	if form() == "" {
		return 128 << 10
	}
	return 8 << 10
}

// TestF39SnapshotOverASlowLink lets a node join whose link is slow: the snapshot is sent once, as
// long as it makes progress.
func TestF39SnapshotOverASlowLink(t *testing.T) {
	tier.Long(t)
	c := harness.NewCluster(t, harness.Config{Tuning: snapshotOften})
	joined := c.Add(t, "D", "--join", c.Nodes[0].GRPC)
	relay, err := edge.Listen(joined.Raft)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { relay.Close() })
	relay.Become(edge.Line{BytesPerSecond: slowLink()})
	first := c.Others(joined)
	for _, n := range first {
		n.Tuning.Dial = map[string]string{joined.Tag: relay.Addr()}
		n.Start(t)
	}
	c.WaitReady(t)
	names := manyNames(t, first)
	r := record(t, c, deadline)
	r.figures.cycles = 1
	r.traffic.Thick(t)
	begin := time.Now()
	joined.Start(t)
	harness.Eventually(t, 3*time.Minute, "the snapshot is installed", func(context.Context) error {
		if !strings.Contains(joined.Process.Output(), "nstalled remote snapshot") {
			return errors.New("it is not yet")
		}
		return nil
	})
	t.Logf("a snapshot of %d names took %s", names, time.Since(begin))
	relay.Become(soundLine)
	for _, n := range first {
		if strings.Contains(n.Process.Output(), "failed to send snapshot") {
			t.Errorf("node %s began the snapshot again", n.Tag)
		}
	}
	joined.Settled(t)
	r.ends(t)
}
