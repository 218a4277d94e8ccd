package result

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/bench/generator"
	"github.com/idnode/idnode/bench/machine"
	"github.com/idnode/idnode/internal/bench"
)

func TestSpread(t *testing.T) {
	for name, tc := range map[string]struct {
		series Series
		want   Spread
		ok     bool
	}{
		"none":       {Series{}, Spread{}, false},
		"one":        {Series{3: 5}, Spread{5, 5, 5}, true},
		"odd":        {Series{1: 9, 2: 1, 3: 4}, Spread{4, 1, 9}, true},
		"even":       {Series{1: 9, 2: 1, 3: 4, 4: 6}, Spread{5, 1, 9}, true},
		"all alike":  {Series{1: 2, 2: 2}, Spread{2, 2, 2}, true},
		"an outlier": {Series{1: 10, 2: 11, 3: 12, 4: 13, 5: 1000}, Spread{12, 10, 1000}, true},
	} {
		got, ok := tc.series.Spread()
		if got != tc.want || ok != tc.ok {
			t.Errorf("%s: %v %t", name, got, ok)
		}
	}
}

// TestRatiosAreMadeRunByRun shows why: the machine of run 2 is ten times slower,
// and the ratio of the medians would be 5.
func TestRatiosAreMadeRunByRun(t *testing.T) {
	fast, slow := Series{1: 100, 2: 10, 3: 100}, Series{1: 50, 2: 5, 3: 20}
	if diff := cmp.Diff(Series{1: 2, 2: 2, 3: 5}, fast.Over(slow)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Series{1: 150, 2: 15, 3: 120}, fast.Plus(slow)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Series{2: 2}, fast.Over(Series{2: 5, 4: 1})); diff != "" {
		t.Error(diff)
	}
}

func measured(run int, system string, callers int, rate float64) Record {
	return Record{Run: run, Load: &Load{System: system, Report: bench.Report{
		Op: "put", Callers: callers, Batch: 1, IDsPerS: rate, ErrorReasons: map[string]int64{"busy": 2},
	}}}
}

func TestResultsAreReadAsWritten(t *testing.T) {
	all := Results{
		{About: &About{Runs: 2, Command: "go run .", Versions: []string{"etcd v3"}}},
		{Skipped: &Skipped{System: "redis", Why: "not installed"}},
		{Run: 1, Fsync: &machine.Fsync{P50us: 100, P99us: 900}},
		measured(1, "etcd", 64, 1000),
		measured(2, "etcd", 64, 2000),
		measured(2, "etcd", 512, 3000),
		{Run: 1, Generator: &generator.Stats{Name: "x", Goroutines: 8, NsPerID: 2.5}},
	}
	var file bytes.Buffer
	for _, r := range all {
		if err := Write(&file, r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Error(diff)
	}
	rate := func(r bench.Report) float64 { return r.IDsPerS }
	if diff := cmp.Diff(Series{1: 1000, 2: 2000}, got.Loads(Key{"etcd", "put", "", 64, 1}, rate)); diff != "" {
		t.Error(diff)
	}
	if s := got.Loads(Key{"etcd", "put", "", 64, 100}, rate); len(s) != 0 {
		t.Errorf("another batch has %v", s)
	}
	if diff := cmp.Diff(Series{1: 2.5}, got.Generators("x", 8, func(f generator.Stats) float64 { return f.NsPerID })); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Series{1: 900}, got.Fsyncs(func(f machine.Fsync) float64 { return float64(f.P99us) })); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"etcd put: busy": 6}, got.Failed()); diff != "" {
		t.Error(diff)
	}
	if got.About().Runs != 2 || len(got.Skipped()) != 1 {
		t.Errorf("%+v %+v", got.About(), got.Skipped())
	}
}

func TestReadNamesTheBadLine(t *testing.T) {
	_, err := Read(strings.NewReader("{\"run\":1}\n{\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
}
