package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/bench/generator"
	"github.com/idnode/idnode/bench/machine"
	"github.com/idnode/idnode/bench/result"
	"github.com/idnode/idnode/internal/bench"
)

var update = flag.Bool("update", false, "write the golden files")

// made is a measurement of three runs that is easy to check by hand: with n
// callers everything takes 100·n µs but for what factor says, and run 2 is twice
// as slow as the others. Redis was skipped.
func made() result.Results {
	all := result.Results{
		{About: &result.About{
			Machine: machine.Machine{
				CPU: "A processor", Cores: 2, MemoryMiB: 24105, OS: "linux/amd64, kernel 6.1", Go: "go1.26",
				Commit: "0123456789", Date: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
			},
			Command: "go run . --runs 3", Versions: []string{"idnode v1", "etcd v3"}, Runs: 3, Seconds: 2.5,
		}},
		{Skipped: &result.Skipped{System: "redis", Why: "not installed"}},
	}
	for run, drift := range []float64{1: 1, 2: 2, 3: 1} {
		if run == 0 {
			continue
		}
		all = append(all, result.Record{Run: run, Fsync: &machine.Fsync{P50us: int64(100 * drift), P99us: int64(900 * drift)}})
		for _, w := range rows {
			if w.class == single {
				continue
			}
			for _, callers := range allCallers {
				all = append(all, madeLoad(run, w, callers, drift*factor(w)))
			}
		}
		for i, name := range generator.Names() {
			for _, goroutines := range []int{1, 8} {
				all = append(all, result.Record{Run: run, Generator: &generator.Stats{
					Name: name, Goroutines: goroutines, NsPerID: float64((i+1)*goroutines) * drift, AllocsPerID: int64(i % 3),
				}})
			}
		}
	}
	return all
}

// factor makes etcd slower, and the empty call faster.
func factor(w row) float64 {
	switch w.class {
	case cluster:
		return 4
	case floor:
		return 0.5
	}
	return 1
}

func madeLoad(run int, w row, callers int, slow float64) result.Record {
	r := bench.Report{
		Op: w.key.Op, Via: w.key.Via, Callers: callers, Batch: w.key.Batch,
		CallsPerS: 10_000 / slow, P50us: int64(100 * float64(callers) * slow), P99us: int64(900 * float64(callers) * slow),
	}
	if r.Op != bench.Echo {
		r.IDsPerS = r.CallsPerS * float64(r.Batch)
	}
	if w.key.System == "etcd" && callers == 512 {
		r.ErrorReasons = map[string]int64{"too many requests": 2}
	}
	return result.Record{Run: run, Load: &result.Load{System: w.key.System, Report: r}}
}

// page has the marks of all parts, and words around them.
func page() string {
	text := "# By hand\n"
	for _, b := range blocks(nil) {
		text += "\nBefore " + b.name + ".\n\n<!-- generated: " + b.name + " -->\nold\n<!-- end -->\n"
	}
	return text + "\nThe end.\n"
}

func TestGolden(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(file, []byte(page()), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // The second time changes nothing.
		if err := Write(file, io.Discard, made()); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"performance.md", "performance-rates.svg", "performance-generators.svg"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs; if that is right: go test ./report -update\n%s", name, diff)
		}
	}
}

func TestPlotsAreWellFormed(t *testing.T) {
	for _, r := range []result.Results{nil, made()} {
		for name, svg := range plots(r) {
			d := xml.NewDecoder(strings.NewReader(svg))
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Errorf("%s: %v", name, err)
					break
				}
			}
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Errorf("%s has places that are none", name)
			}
		}
	}
}

func TestVerdict(t *testing.T) {
	least := target{bound: 2}
	for name, tc := range map[string]struct {
		target target
		series result.Series
		want   string
	}{
		"above the least":        {least, result.Series{1: 2.1}, "met"},
		"just the least":         {least, result.Series{1: 2}, "met"},
		"below the least":        {least, result.Series{1: 1.9}, "**missed**"},
		"the median decides":     {least, result.Series{1: 0.1, 2: 2.5, 3: 2.6}, "met"},
		"below the most":         {most(least), result.Series{1: 1.9}, "met"},
		"above the most":         {most(least), result.Series{1: 2.1}, "**missed**"},
		"nothing to be met with": {least, nil, "not measured"},
	} {
		if got := tc.target.verdict(tc.series); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0331: "0.0331", 0.5: "0.500", 8.264: "8.26", 87.64: "87.6", 767: "767", 999.6: "1,000", 1733: "1,730", 46308787: "46,300,000",
	} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 1: "1", 1.5: "1.5", 5e6: "5,000,000"} {
		if got := plain(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestAPageWithoutAMarkIsRefused(t *testing.T) {
	for _, missing := range []string{"<!-- generated: rates -->", "<!-- end -->"} {
		if _, err := replaceBlocks(strings.ReplaceAll(page(), missing, ""), blocks(nil)); err == nil {
			t.Errorf("a page without %q was taken", missing)
		}
	}
}

func TestPrinted(t *testing.T) {
	var out bytes.Buffer
	if err := Write("-", &out, made()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A processor", "| target |", "Skipped: redis: not installed."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
