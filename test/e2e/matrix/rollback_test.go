package matrix

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestF16DiskSetBack starts a node from an older copy of its data, under traffic:
// it ends, and says why. Where an operator trusts the copy, it gives no server-side
// id twice.
func TestF16DiskSetBack(t *testing.T) {
	r := start(t, harness.Config{}, deadline)
	for i := range r.cycles(t, 2, 50) {
		n := r.c.Others(r.c.Leader(t))[0]
		r.traffic.Thick(t)
		if i%2 == 0 {
			n.Process.Kill()
		} else {
			n.Process.Stop(t)
		}
		backup := t.TempDir()
		copyData(t, backup, n.DataDir)
		r.restart(t, n)
		beyondReserved(t, n)
		r.traffic.Thick(t)
		n.Process.Kill()
		if err := os.RemoveAll(n.DataDir); err != nil {
			t.Fatal(err)
		}
		copyData(t, n.DataDir, backup)
		n.Start(t)
		if code := n.Process.Wait(t, 15*time.Second); code != 4 || !strings.Contains(n.Process.Tail(1), "older copy") {
			t.Errorf("the node ended with %d, and did not say that its data were set back:\n%s", code, n.Process.Tail(30))
		}
		n.Start(t, "--trust-data")
		r.c.WaitReady(t)
		if out := n.Process.Output(); !strings.Contains(out, "server-side ids go on above") {
			t.Errorf("the node did not say that its etags were set back:\n%s", n.Process.Tail(30))
		}
	}
	r.ends(t)
}

func copyData(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// beyondReserved takes more server-side ids than were reserved before.
func beyondReserved(t *testing.T, n *harness.Node) {
	t.Helper()
	harness.Eventually(t, 15*time.Second, "server-side ids", func(ctx context.Context) error {
		_, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/", Count: 300_000, BlocksOnly: true})
		return err
	})
}
