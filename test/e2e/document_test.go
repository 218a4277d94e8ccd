package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
)

// pageTime bounds all steps of a document together; they take about half a minute.
const pageTime = 5 * time.Minute

// needPrograms skips a test that needs programs which are not here.
func needPrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the commands need %s, which is not here", program)
		}
	}
}

// operated returns a page below docs/operate/.
func operated(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operate/" + page + ".md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// step is one block of commands in the document.
type step struct {
	// heading is where it stands.
	heading, commands string
	// output is what it prints, if the document shows that.
	output []string
	shown  bool
	// onSmallDisks says that the output is that of nodes with disks of their own.
	onSmallDisks bool
}

// stepsOf reads a document: blocks of commands (```sh), each with its output if one
// follows (```text), and between them, in comments that begin with "tried:", what
// readers need not do: what breaks the cluster so that there is something to repair.
func stepsOf(t *testing.T, document string) []step {
	t.Helper()
	var all []step
	heading, fence := "", ""
	var lines []string
	for line := range strings.SplitSeq(document, "\n") {
		switch {
		case fence != "" && line == "```":
			switch {
			case fence == "sh":
				all = append(all, step{heading: heading, commands: strings.Join(lines, "\n")})
			case !strings.HasPrefix(fence, "text"):
				// It is for programs.
			case len(all) > 0 && !all[len(all)-1].shown:
				last := &all[len(all)-1]
				last.output, last.shown, last.onSmallDisks = lines, true, fence == "text if-small-disks"
			default:
				t.Fatalf("%s: an output without commands: %q", heading, lines)
			}
			fence = ""
		case fence != "":
			lines = append(lines, line)
		case strings.HasPrefix(line, "```"):
			fence, lines = strings.TrimPrefix(line, "```"), nil
		case strings.HasPrefix(line, "<!-- tried: "):
			hidden := strings.TrimSuffix(strings.TrimPrefix(line, "<!-- tried: "), " -->")
			all = append(all, step{heading: heading + " (not shown)", commands: hidden})
		case strings.HasPrefix(line, "## "), strings.HasPrefix(line, "### "):
			heading = strings.TrimLeft(line, "# ")
		}
	}
	return all
}

// shell is a folder in which commands are tried with the program under test.
type shell struct {
	dir string
	env []string
	// bin is the first folder in which commands are looked for.
	bin string
	// start is the command that takes a script.
	start []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{dir: t.TempDir(), bin: t.TempDir(), start: []string{"bash", "-c"}} // The program is replaced in the course of an upgrade.
	program, err := os.ReadFile(harness.Binary(t))
	if err == nil {
		err = os.WriteFile(filepath.Join(s.bin, "idnode"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "IDNODE_") })
	s.env = append(s.env, "PATH="+s.bin+":"+os.Getenv("PATH"), "LC_ALL=C")
	return s
}

// mark stands between the outputs of two steps.
const mark = "=== the next step ==="

// run does the steps in one shell, and returns what each printed. It ends at the
// first command that fails.
func (s *shell) run(t *testing.T, steps []step) [][]string {
	t.Helper()
	script := []string{"set -eu -o pipefail"}
	for _, step := range steps {
		script = append(script, "echo '"+mark+"'", step.commands)
	}
	ctx, cancel := context.WithTimeout(context.Background(), pageTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.start[0], append(s.start[1:], strings.Join(script, "\n"))...)
	cmd.Dir, cmd.Env = s.dir, s.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// The nodes are the shell's children, in one group with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		s.awaitEnd(t)
	})
	err := cmd.Run()
	outputs := strings.Split(strings.TrimPrefix(stdout.String(), mark+"\n"), mark+"\n")
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		step := steps[min(len(outputs), len(steps))-1]
		t.Fatalf("%s: %v\ncommands:\n%s\nprinted:\n%s\nerrors:\n%s\nlogs:\n%s", step.heading, err, step.commands, outputs[len(outputs)-1],
			stderr.String(), s.logs())
	}
	if len(outputs) != len(steps) {
		t.Fatalf("%d steps of %d were done: %s", len(outputs), len(steps), stderr.String())
	}
	lines := make([][]string, len(outputs))
	for i, output := range outputs {
		if output = strings.TrimSuffix(output, "\n"); output != "" {
			lines[i] = strings.Split(output, "\n")
		}
	}
	return lines
}

// awaitEnd waits until no node writes into the folder any more.
func (s *shell) awaitEnd(t *testing.T) {
	t.Helper()
	pids, _ := filepath.Glob(filepath.Join(s.dir, "*.pid"))
	for _, file := range pids {
		pid, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		harness.Eventually(t, 10*time.Second, "the end of the nodes", func(context.Context) error {
			if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid)) + "/exe"); err == nil {
				return fmt.Errorf("%s runs", file)
			}
			return nil
		})
	}
}

// logs returns the ends of the nodes' logs.
func (s *shell) logs() string {
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
	var b strings.Builder
	for _, file := range files {
		text, _ := os.ReadFile(file)
		fmt.Fprintf(&b, "%s:\n%s\n", filepath.Base(file), text[max(0, len(text)-2000):])
	}
	return b.String()
}

var (
	// volatile is what differs from run to run: numbers, times, ids, and who leads.
	volatile = regexp.MustCompile(`[0-9a-f]{16,}|\d[0-9.:]*((ms|s|m|h)[0-9.]*)*`)
	leads    = regexp.MustCompile(`leader|follower`)
	// built is the version of a program that no release set.
	built = regexp.MustCompile(`\b(v\d[0-9a-zA-Z.+-]*|devel[0-9a-zA-Z.+-]*)`)
	// answers is how a member answered its last ping, which a busy machine may hold up.
	answers = regexp.MustCompile(`\b(yes # ok|no(, #)? - -) - (built|-)`)
	blanks  = regexp.MustCompile(`\s+`)
)

// shape returns a line without what differs from run to run.
func shape(line string) string {
	line = built.ReplaceAllString(strings.TrimSpace(line), "built")
	line = volatile.ReplaceAllString(line, "#")
	line = blanks.ReplaceAllString(leads.ReplaceAllString(line, "voter"), " ")
	return answers.ReplaceAllString(line, "heard")
}

// compare compares what the commands printed with what the document shows, if it does.
func (s step) compare(t *testing.T, printed []string, form func(string) string) {
	t.Helper()
	if !s.shown {
		return
	}
	if why := differs(s.output, printed, form); why != "" {
		t.Errorf("%s: %s\ncommands:\n%s\nprinted:\n%s\nshown:\n%s", s.heading, why,
			s.commands, strings.Join(printed, "\n"), strings.Join(s.output, "\n"))
	}
}

// differs compares what was printed with what is shown, by the form of each line. A line
// with nothing but … stands for any number of lines.
func differs(shown, printed []string, form func(string) string) string {
	if len(shown) == 0 {
		if len(printed) > 0 {
			return "more was printed than is shown"
		}
		return ""
	}
	if shown[0] == "…" {
		for i := range len(printed) + 1 {
			if differs(shown[1:], printed[i:], form) == "" {
				return ""
			}
		}
		return "nothing that was printed is like what is shown after …"
	}
	if len(printed) == 0 {
		return fmt.Sprintf("%q was not printed", shown[0])
	}
	if form(shown[0]) != form(printed[0]) {
		return fmt.Sprintf("%q is shown, %q was printed", shown[0], printed[0])
	}
	return differs(shown[1:], printed[1:], form)
}

// TestShapes: what counts as the same output.
func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		shown, printed string
		same           bool
	}{
		{"ready", "ready", true},
		{"ready", "not ready", false},
		{"invoices/2", "invoices/17", true},
		{"for 1.685s; x", "for 1m20.5s; x", true},
		{"A leader   127.0.0.1:7400 f703c038946314fea35bf3fe22b69a4b", "A  follower 127.9.9.9:7410  1ebcd82a2c9cff8e33e15be77bb37d7a", true},
		{"A leader", "B leader", false},
		{"A leader yes 0 ok - v1.2.0 127.0.0.1:7400", "A follower  yes  3  ok  -  v0.0.0-20261122-abcdef+dirty  127.9.9.9:7410", true},
		{"A leader yes 0 ok - v1.2.0 127.0.0.1:7400", "A follower  no, 1m2s  -  -  -  -  127.9.9.9:7410", true},
		{"A leader yes 0 ok - v1.2.0 127.0.0.1:7400", "A follower  yes  3  full  -  v1.2.0  127.9.9.9:7410", false},
		{"a\nb", "a", false},
		{"a", "a\nb", false},
		{"a\n…\nb", "a\nb", true},
		{"a\n…\nb", "a\nx\ny\nb", true},
		{"a\n…\nb", "a\nx\ny", false},
	} {
		if why := differs(strings.Split(tt.shown, "\n"), strings.Split(tt.printed, "\n"), shape); (why == "") != tt.same {
			t.Errorf("%q and %q: %q", tt.shown, tt.printed, why)
		}
	}
}
