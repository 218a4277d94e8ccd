package damage

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// The figures stand between these lines of the page.
const (
	begin = "<!-- damage: written by `make damage` -->"
	end   = "<!-- end of damage -->"
)

// table counts outcomes by part of the data and kind of damage.
var table struct {
	sync.Mutex
	rows  map[string]map[string]int
	kinds map[string]map[string]int
	nodes []string
}

func note(results []result) {
	table.Lock()
	defer table.Unlock()
	if table.rows == nil {
		table.rows, table.kinds = map[string]map[string]int{}, map[string]map[string]int{}
	}
	for _, r := range results {
		count(table.rows, part(r.File), r.Outcome)
		count(table.kinds, r.Kind, r.Outcome)
	}
}

func count[K comparable](counts map[K]map[string]int, key K, outcome string) {
	if counts[key] == nil {
		counts[key] = map[string]int{}
	}
	counts[key][outcome]++
}

// part is what a file of a data directory is called on the page.
func part(file string) string {
	switch filepath.Dir(file) {
	case "log":
		if filepath.Base(file) == "mark" {
			return "log/mark"
		}
		return "log, segments"
	case ".":
		if filepath.Ext(file) == "" {
			return "folder " + file
		}
		return file
	}
	return "snapshots, " + filepath.Base(file)
}

// summary is the table of a test's log.
func summary(results []result) string {
	counts := map[string]map[string]int{}
	for _, r := range results {
		count(counts, part(r.File)+", "+r.Kind, r.Outcome)
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%-40s %v\n", key, counts[key])
	}
	return b.String()
}

// writePage puts the figures between the markers of the page.
func writePage(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(content), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the figures", path)
	}
	return os.WriteFile(path, []byte(before+begin+"\n\n"+written()+"\n"+end+after), 0o644)
}

// written are the figures as the page has them.
func written() string {
	table.Lock()
	defer table.Unlock()
	var b strings.Builder
	all := map[string]int{}
	for _, counts := range table.rows {
		for outcome, n := range counts {
			all[outcome] += n
		}
	}
	wrong := all[silent] + all[unclear] + all[crashed]
	fmt.Fprintf(&b, "%s, commit %s, %d processors, %s: %d damages, %d noticed, %d harmless, %d silent, %d ended without DATA_LOSS.\n\n",
		time.Now().Format("2 January 2006"), commit(), runtime.NumCPU(), runtime.Version(),
		all[noticed]+all[harmless]+wrong, all[noticed], all[harmless], all[silent], all[unclear]+all[crashed])
	b.WriteString("| file | damages | noticed | harmless | silent |\n|---|--:|--:|--:|--:|\n")
	for _, key := range slices.Sorted(maps.Keys(table.rows)) {
		line(&b, key, table.rows[key])
	}
	b.WriteString("\n| kind of damage | damages | noticed | harmless | silent |\n|---|--:|--:|--:|--:|\n")
	for _, key := range slices.Sorted(maps.Keys(table.kinds)) {
		line(&b, key, table.kinds[key])
	}
	if len(table.nodes) > 0 {
		b.WriteString("\n" + strings.Join(table.nodes, "\n") + "\n")
	}
	return b.String()
}

func line(b *strings.Builder, name string, counts map[string]int) {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	fmt.Fprintf(b, "| %s | %d | %d | %d | %d |\n", name, sum, counts[noticed], counts[harmless], counts[silent])
}

func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "panic") || strings.HasPrefix(line, "fatal") ||
			strings.HasPrefix(line, "unexpected") {
			return line
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func noteLine(text string) {
	table.Lock()
	defer table.Unlock()
	table.nodes = append(table.nodes, "* "+text)
}
