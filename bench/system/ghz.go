package system

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/idnode/idnode/bench/load"
	"github.com/idnode/idnode/internal/bench"
)

// ViaGhz is a load that the program ghz puts on, which has no part of idnode or of etcd's client:
// one connection to the leader, and so many workers that share it.
const ViaGhz = "ghz"

// etcdProto has the one call that ghz makes at etcd, whose members do not describe themselves.
//
//go:embed etcd.proto
var etcdProto []byte

// ghzPoints is the load of ghz, if it is installed.
func ghzPoints(op string, callers int) []Point {
	if _, err := exec.LookPath(ViaGhz); err != nil {
		return nil
	}
	return []Point{{Op: op, Via: ViaGhz, Callers: callers, Batch: 1}}
}

// ghzReport is the part of ghz's JSON that is used. Times are in nanoseconds.
type ghzReport struct {
	Total       time.Duration    `json:"total"`
	Slowest     time.Duration    `json:"slowest"`
	RPS         float64          `json:"rps"`
	StatusCodes map[string]int64 `json:"statusCodeDistribution"`
	Latencies   []ghzLatency     `json:"latencyDistribution"`
}

type ghzLatency struct {
	Percentage int           `json:"percentage"`
	Latency    time.Duration `json:"latency"`
}

// ghz has workers call one method at one address. It has no warm-up, so the plan's is a run of
// its own before. dir is for the proto, which may be nil where the server describes itself.
func ghz(ctx context.Context, plan load.Plan, p Point, dir, address, method, data string, proto []byte) (bench.Report, error) {
	args := []string{
		"--insecure", "--call", method, "--data", data, "--format", "json", "--duration-stop", "wait",
		"--concurrency", fmt.Sprint(p.Callers),
	}
	if proto != nil {
		file := filepath.Join(dir, "ghz.proto")
		if err := os.WriteFile(file, proto, 0o600); err != nil {
			return bench.Report{}, err
		}
		args = append(args, "--proto", file)
	}
	var r ghzReport
	for _, duration := range []time.Duration{plan.WarmUp, plan.Duration} {
		out, err := exec.CommandContext(ctx, ViaGhz, append(args, "--duration", duration.String(), address)...).Output()
		if err != nil {
			return bench.Report{}, fmt.Errorf("ghz: %w", err)
		}
		r = ghzReport{}
		if err := json.Unmarshal(out, &r); err != nil {
			return bench.Report{}, fmt.Errorf("ghz: %w", err)
		}
	}
	return r.report(p), nil
}

// report has no p99.9, which ghz does not print.
func (r ghzReport) report(p Point) bench.Report {
	report := bench.Report{
		Op: p.Op, Via: p.Via, Callers: p.Callers, Batch: p.Batch, Names: 1, Seconds: r.Total.Seconds(),
		CallsPerS: r.RPS, IDsPerS: r.RPS, MaxUs: r.Slowest.Microseconds(), ErrorReasons: map[string]int64{},
	}
	for _, l := range r.Latencies {
		switch l.Percentage {
		case 50:
			report.P50us = l.Latency.Microseconds()
		case 99:
			report.P99us = l.Latency.Microseconds()
		}
	}
	for code, n := range r.StatusCodes {
		if code != "OK" {
			report.ErrorReasons[code] = n
		}
	}
	return report
}
