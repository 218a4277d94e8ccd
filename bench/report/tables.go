package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/idnode/idnode/bench/generator"
	"github.com/idnode/idnode/bench/machine"
	"github.com/idnode/idnode/bench/result"
)

// about says how, on what and of what it was measured.
func about(r result.Results) string {
	a := r.About()
	m := a.Machine
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s at commit `%s`, in %d runs of %s s for each load. Figures are medians (least–most).\n\n",
		m.Date.Format(time.DateOnly), m.Commit, a.Runs, plain(a.Seconds))
	fmt.Fprintf(&b, "```console\n$ cd bench\n$ %s\n```\n\n", a.Command)
	micro := func(value func(machine.Fsync) int64) string {
		return spread(r.Fsyncs(func(f machine.Fsync) float64 { return float64(value(f)) }), number)
	}
	b.WriteString(table([]string{"machine", ""}, [][]string{
		{"processor", fmt.Sprintf("%s, %d cores", m.CPU, m.Cores)},
		{"memory", fmt.Sprintf("%s MiB", commas(fmt.Sprint(m.MemoryMiB)))},
		{"system", m.OS},
		{"4 KiB append and fdatasync, p50", micro(func(f machine.Fsync) int64 { return f.P50us }) + " µs"},
		{"4 KiB append and fdatasync, p99", micro(func(f machine.Fsync) int64 { return f.P99us }) + " µs"},
		{"Go", m.Go},
	}))
	b.WriteString("\nVersions:\n\n")
	for _, version := range a.Versions {
		fmt.Fprintf(&b, "* %s\n", version)
	}
	for _, s := range r.Skipped() {
		fmt.Fprintf(&b, "\nSkipped: %s: %s.\n", s.System, s.Why)
	}
	return b.String()
}

// byCallers writes a table of a line for each row and a column for each number
// of callers.
func byCallers(r result.Results, first string, cell func(w row, callers int) string) string {
	head := []string{first}
	for _, callers := range allCallers {
		if callers == 1 {
			head = append(head, "1 caller")
		} else {
			head = append(head, fmt.Sprintf("%d callers", callers))
		}
	}
	var lines [][]string
	for _, w := range rows {
		line := []string{w.label}
		for _, callers := range allCallers {
			line = append(line, cell(w, callers))
		}
		lines = append(lines, line)
	}
	return table(head, lines)
}

func rateTable(r result.Results) string {
	text := byCallers(r, "ids/s (of the empty call: calls/s)", func(w row, callers int) string {
		return spread(w.rate(r, callers), number)
	})
	failed := r.Failed()
	if len(failed) == 0 {
		return text + "\nNo call failed.\n"
	}
	text += "\nCalls that failed, and are not counted above:\n\n"
	for _, what := range slices.Sorted(maps.Keys(failed)) {
		text += fmt.Sprintf("* %s: %d\n", what, failed[what])
	}
	return text
}

func latencyTable(r result.Results) string {
	return byCallers(r, "one call, p50 / p99 in ms", func(w row, callers int) string {
		p50, ok := w.p50(r, callers).Spread()
		p99, _ := w.p99(r, callers).Spread() // It is there if the other is.
		if !ok {
			return "–"
		}
		return number(p50.Median/1000) + " / " + number(p99.Median/1000)
	})
}

func generatorTable(r result.Results) string {
	var lines [][]string
	for _, name := range generator.Names() {
		allocs := r.Generators(name, 1, func(f generator.Stats) float64 { return float64(f.AllocsPerID) })
		lines = append(lines, []string{
			name, spread(nsPerID(r, name, 1), number), spread(nsPerID(r, name, 8), number), spread(allocs, plain),
		})
	}
	return table([]string{"one id, in ns", "1 goroutine", "8 goroutines", "allocations"}, lines)
}
