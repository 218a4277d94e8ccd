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

// bytesPerSecond is how quick the link of a node is that joins: its snapshot takes a few seconds by
// default, and a minute or so in the longer forms.
func bytesPerSecond(names int) int {
	if form() == "" {
		return 128 << 10
	}
	return names / 4
}

// TestF39SnapshotOverSlowLink lets a node join whose link is slow: a leader sends its snapshot
// once, as long as it makes progress.
func TestF39SnapshotOverSlowLink(t *testing.T) {
	tier.Long(t)
	c := harness.NewCluster(t, harness.Config{Tuning: snapshotOften})
	joined := c.Add(t, "D", "--join", c.Nodes[0].GRPC)
	relay, err := edge.Listen(joined.Raft)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { relay.Close() })
	relay.Become(soundLine)
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
	relay.Become(edge.Line{BytesPerSecond: bytesPerSecond(names)})
	term, begin := highestTerm(c), time.Now()
	joined.Start(t)
	harness.Eventually(t, 3*time.Minute, "the snapshot is installed", func(context.Context) error {
		if !strings.Contains(joined.Process.Output(), "nstalled remote snapshot") {
			return errors.New("it is not yet")
		}
		return nil
	})
	t.Logf("a snapshot of %d names took %s", names, time.Since(begin))
	relay.Become(soundLine)
	again := 0
	for _, n := range first {
		again += strings.Count(n.Process.Output(), "failed to send snapshot")
	}
	if again > 0 && highestTerm(c) == term {
		t.Errorf("one leader began the snapshot %d times again", again)
	}
	relay.Reset() // What a former leader has sent is not waited for.
	joined.Settled(t)
	r.ends(t)
}
