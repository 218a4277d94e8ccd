package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestDivergedNodeEnds: one node of three has a counter that is wrong since it
// restored its snapshot. It ends within seconds, does not start again, with a sound
// program either, and the others go on and count it for the alarm.
func TestDivergedNodeEnds(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{Tuning: failpoint.Tuning{SnapshotThreshold: 10, SnapshotInterval: 500 * time.Millisecond}})
	diverged, others := c.Nodes[2], c.Nodes[:2]
	load := harness.StartLoad(harness.NewLedger(t), others, "orders", 2, changed)
	defer load.Stop()
	harness.Eventually(t, changed, "a snapshot", func(context.Context) error {
		snapshots, err := filepath.Glob(filepath.Join(diverged.DataDir, "snapshots", "*", "state.bin"))
		if err == nil && len(snapshots) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	diverged.Process.Stop(t)
	diverged.Program = harness.MutantBinary(t, "state-diverges")
	diverged.Start(t)
	wantDiverged(t, diverged)
	diverged.Program = ""
	diverged.Start(t)
	wantDiverged(t, diverged)
	load.Stop()
	c.LeaderAmong(t, others)
	for _, n := range others {
		harness.Eventually(t, changed, "the difference in the metrics", func(ctx context.Context) error { return counted(ctx, n) })
	}
}

func wantDiverged(t *testing.T, n *harness.Node) {
	t.Helper()
	if code := n.Process.Wait(t, changed); code != 4 {
		t.Errorf("a node whose state differs ended with %d, want 4", code)
	}
	for _, want := range []string{"STATE_DIVERGED", "at log entry", "idnode cluster remove " + n.Tag, "empty " + n.DataDir} {
		if last := n.Process.Tail(1); !strings.Contains(last, want) {
			t.Errorf("the last line does not say %q:\n%s", want, last)
		}
	}
}

// counted says whether a node has counted a difference.
func counted(ctx context.Context, n *harness.Node) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/metrics", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && (!strings.Contains(string(text), "idnode_state_differences_total ") ||
		strings.Contains(string(text), "idnode_state_differences_total 0\n")) {
		err = errors.New("it counts none")
	}
	return err
}
