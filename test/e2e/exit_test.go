package e2e

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
)

// drained bounds a clean stop: TimeoutStopSec of the systemd unit is longer.
const drained = 25 * time.Second

// TestExitCodes: what a service manager goes by. A node that is told to stop under
// load answers what is in flight, and ends in time with 0; one that crashes dies of
// a signal, if the environment of the unit says so; the rest have a code each.
func TestExitCodes(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	stopped, crashed, damaged := c.Nodes[0], c.Nodes[1], c.Nodes[2]

	load := harness.StartLoad(harness.NewLedger(t), []*harness.Node{stopped}, "orders", 16, changed)
	harness.Eventually(t, changed, "load", func(context.Context) error {
		if load.OK.Load() < 200 {
			return context.DeadlineExceeded
		}
		return nil
	})
	begin := time.Now()
	stopped.Process.Signal(t, syscall.SIGTERM)
	if code := stopped.Process.Wait(t, drained); code != 0 {
		t.Errorf("a node that was told to stop ended with %d", code)
	}
	t.Logf("a node under load stopped within %s", time.Since(begin).Round(time.Millisecond))
	load.Stop()
	for _, failed := range load.Failures() {
		// One that had not arrived yet may be refused, or find that nobody listens.
		if failed.Call.Before(begin) && !harness.NeverSent(failed.Err) && harness.Reason(failed.Err) != "STOPPING" {
			t.Errorf("a call that was in flight failed: %v", failed.Err)
		}
	}
	stopped.Start(t)
	stopped.WaitReady(t)

	crashed.Process.Stop(t)
	crashed.Env = []string{"GOTRACEBACK=crash"}
	crashed.Start(t)
	crashed.WaitReady(t)
	crashed.Process.Signal(t, syscall.SIGABRT)
	if code := crashed.Process.Wait(t, drained); code != -1 {
		t.Errorf("a node that was aborted ended with %d, not by a signal", code)
	}
	crashed.Start(t)
	crashed.WaitReady(t)

	damaged.Process.Stop(t)
	for _, tt := range []struct {
		record, says string
		code         int
	}{{`{"version": 1}`, "it is of version 1, of a program before the first release, and this program reads version 2", 5}, {"x", "DATA_LOSS", 4}} {
		if err := os.WriteFile(filepath.Join(damaged.DataDir, "node.json"), []byte(tt.record), 0o600); err != nil {
			t.Fatal(err)
		}
		damaged.Start(t)
		ends(t, damaged, tt.says)
		if code := damaged.Process.Wait(t, drained); code != tt.code {
			t.Errorf("a node with the record %s ended with %d, want %d", tt.record, code, tt.code)
		}
	}
	remove(t, stopped, damaged.Tag)

	remove(t, stopped, crashed.Tag)
	if code := crashed.Process.Wait(t, drained); code != 5 {
		t.Errorf("a node that was removed ended with %d, want 5", code)
	}
	crashed.Start(t, "--log-level", "loud")
	if code := crashed.Process.Wait(t, drained); code != 2 {
		t.Errorf("a node with wrong settings ended with %d, want 2", code)
	}
}
