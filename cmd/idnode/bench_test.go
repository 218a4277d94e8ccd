package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/bench"
	"github.com/idnode/idnode/internal/freeport"
)

func TestBenchRefusesNonsense(t *testing.T) {
	for _, args := range [][]string{
		{"--op", "ids"},
		{"--via", "post"},
		{"--callers", "0"},
		{"--batch", "0"},
		{"--names", "0"},
		{"--duration", "0s"},
		{"--duration", "2h"},
		{"--cluster", "10"},
		{"--serve-flag", "--log-level=debug"},
		{"--op", "echo", "--via", "stream"},
	} {
		r := command(t, append([]string{"bench"}, args...)...)
		if r.code != exitUsage {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.stderr)
		}
	}
}

// counting answers like an identity.
func counting() func(proto.Message) (proto.Message, error) {
	var last atomic.Int64
	return func(req proto.Message) (proto.Message, error) {
		next, ok := req.(*idnodev1.NextIdentityRequest)
		if !ok {
			return nil, nil
		}
		end := last.Add(next.Count)
		return &idnodev1.NextIdentityResponse{Blocks: []*idnodev1.ValueBlock{{First: end - next.Count + 1, Last: end}}}, nil
	}
}

func TestBenchMeasures(t *testing.T) {
	t.Parallel()
	addr := newFakeNode(t, counting()).addr
	r := command(t, "bench", "--endpoint", addr, "--duration", "200ms", "--callers", "4", "--batch", "5", "-o", "json")
	if r.code != exitOK {
		t.Fatalf("exit code %d: %s", r.code, r.stderr)
	}
	var report bench.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, r.stdout)
	}
	if report.IDsPerS <= report.CallsPerS || len(report.ErrorReasons) != 0 {
		t.Errorf("%+v", report)
	}
	for op, unique := range map[string]bool{"echo": false, "identity": true} {
		node := newFakeNode(t, counting())
		r = command(t, "bench", "--endpoint", node.addr, "--duration", "200ms", "--op", op)
		if r.code != exitOK || !strings.Contains(r.stdout, "calls/s") || strings.Contains(r.stdout, "no id came twice") != unique {
			t.Errorf("%s: exit code %d: %s%s", op, r.code, r.stdout, r.stderr)
		}
		for _, call := range node.requests() {
			if next, ok := call.(*idnodev1.NextIdentityRequest); ok && next.GetDatabase() != "bench" {
				t.Fatalf("the load is in database %q", next.GetDatabase())
			}
		}
	}
}

// TestBenchWithoutATemporaryFolder: a cluster that cannot be started is an error, and no panic.
// TestBenchWithoutANode: where a node is gone the others are measured, and without any there is nothing to measure.
func TestBenchWithoutANode(t *testing.T) {
	node, gone := newFakeNode(t, counting()), freeport.For(t)
	r := command(t, "bench", "--endpoint", gone+","+node.addr, "--duration", "200ms", "--op", "echo")
	if r.code != exitOK || strings.Count(r.stderr, "warning: it is measured without "+gone+": ") != 1 {
		t.Errorf("%+v", r)
	}
	if r := command(t, "bench", "--endpoint", gone, "--duration", "200ms", "--op", "echo"); r.code != exitUnavailable || r.stdout != "" {
		t.Errorf("%+v", r)
	}
}

func TestBenchWithoutATemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	if c, err := startBenchCluster(t.Context(), io.Discard, 1, nil); c != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v", c, err)
	}
}
