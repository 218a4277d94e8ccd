package matrix

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The figures stand between these lines of the page.
const (
	begin = "<!-- figures: written by `make matrix` -->"
	end   = "<!-- end of the figures -->"
)

// table holds the figures of all rows that ran.
var table struct {
	sync.Mutex
	rows []*figures
}

// done notes how the row ended.
func (f *figures) done(t *testing.T, repeats int64) {
	f.repeats = repeats
	switch {
	case t.Failed():
		f.outcome = "failed"
	case t.Skipped():
		f.outcome = "not run here"
	default:
		f.outcome = "held"
	}
	table.Lock()
	defer table.Unlock()
	table.rows = append(table.rows, f)
}

// writePage puts the table between the markers of the page.
func writePage(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the figures", path)
	}
	return os.WriteFile(path, []byte(before+begin+"\n\n"+written()+"\n"+end+after), 0o644)
}

// written is the table as the page has it.
func written() string {
	var b strings.Builder
	length := map[string]string{"full": "Full length", "medium": "Medium length"}[form()]
	fmt.Fprintf(&b, "%s, %s, commit %s, %s, %d processors, %s, %s.\n\n", cmp.Or(length, "Short form"), time.Now().Format("2 January 2006"),
		output("git", "rev-parse", "--short", "HEAD"), processor(), runtime.NumCPU(), output("uname", "-sr"), runtime.Version())
	b.WriteString("| row | result | cycles | calls | ids checked | repeated calls | " +
		"longest answer | fail-over p50 / p99 / max |\n")
	b.WriteString("|---|---|--:|--:|--:|--:|--:|--:|\n")
	slices.SortFunc(table.rows, func(a, b *figures) int { return strings.Compare(a.name, b.name) })
	for _, f := range table.rows {
		b.WriteString(f.line())
	}
	return b.String()
}

// line is the row of the table.
func (f *figures) line() string {
	if f.report == nil {
		return fmt.Sprintf("| %s | %s | | | | | | |\n", f.title(), f.outcome)
	}
	calls, longest, ids := 0, time.Duration(0), f.report.Identities+f.report.HiLoUsed+f.report.Etags
	for _, c := range f.report.Calls {
		calls += c.OK + c.Failed + c.Unknown
		longest = max(longest, c.Longest)
	}
	gaps := "–"
	if len(f.gaps) > 0 {
		gaps = fmt.Sprintf("%s / %s / %s", short(f.quantile(50)), short(f.quantile(99)), short(f.quantile(100)))
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %s | %s |\n",
		f.title(), f.outcome, f.cycles, calls, ids, f.repeats, short(longest), gaps)
}

var words = regexp.MustCompile(`[A-Z][a-z]+|[A-Z]+`)

// title makes "F01 leader killed" of TestF01LeaderKilled; the part of a row stands
// behind a comma.
func (f *figures) title() string {
	name := strings.TrimPrefix(f.name, "Test")
	name, part, _ := strings.Cut(name, "/")
	number, rest := name[:3], name[3:]
	title := number + " " + strings.ToLower(strings.Join(words.FindAllString(rest, -1), " "))
	if part != "" {
		title += ", " + strings.ReplaceAll(part, "_", " ")
	}
	if f.note != "" {
		title += " (" + f.note + ")"
	}
	return title
}

func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// processor is the model of the machine's processor.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	if found := regexp.MustCompile(`(?m)^model name\s*:\s*(.*)$`).FindSubmatch(info); found != nil {
		return string(found[1])
	}
	return runtime.GOARCH
}
