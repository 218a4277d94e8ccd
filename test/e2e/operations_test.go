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
	"github.com/idnode/idnode/test/tier"
)

const (
	operationsDoc = "../../docs/operations.md"
	// proceduresTime bounds all procedures together; they take about half a minute.
	proceduresTime = 5 * time.Minute
)

// procedure is one block of commands in the document.
type procedure struct {
	// heading is where it stands.
	heading, commands string
	// output is what it prints, if the document shows that.
	output []string
	shown  bool
	// onSmallDisks says that the output is that of nodes with disks of their own.
	onSmallDisks bool
}

// procedures reads the part of the document that is called Procedures: blocks of
// commands (```sh), each with its output if one follows (```text), and between
// them, in comments that begin with "tried:", what breaks the cluster so that there
// is something to repair.
func procedures(t *testing.T, document string) []procedure {
	t.Helper()
	_, part, ok := strings.Cut(document, "\n## Procedures\n")
	if !ok {
		t.Fatal("the document has no part called Procedures")
	}
	part, _, _ = strings.Cut(part, "\n## ")
	var all []procedure
	heading, fence := "", ""
	var lines []string
	for line := range strings.SplitSeq(part, "\n") {
		switch {
		case fence != "" && line == "```":
			switch {
			case fence == "sh":
				all = append(all, procedure{heading: heading, commands: strings.Join(lines, "\n")})
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
			all = append(all, procedure{heading: heading + " (the fault)", commands: hidden})
		case strings.HasPrefix(line, "### "):
			heading = strings.TrimPrefix(line, "### ")
		}
	}
	return all
}

// TestProcedures does what docs/operations.md says, in order, in one shell, and
// compares what is printed with what the document shows. The nodes are processes
// on a loopback address of its own.
func TestProcedures(t *testing.T) {
	tier.Long(t)
	for _, program := range []string{"bash", "curl", "install"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the procedures need %s, which is not here", program)
		}
	}
	text, err := os.ReadFile(operationsDoc)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.%d.%d.7", 1+os.Getpid()%250, os.Getpid()/250%250)
	steps := procedures(t, strings.ReplaceAll(string(text), "127.0.0.1", address))
	s := newShell(t)
	for i, output := range s.run(t, steps) {
		if step := steps[i]; step.shown && (s.smallDisks || !step.onSmallDisks) {
			if why := differs(step.output, output); why != "" {
				t.Errorf("%s: %s\ncommands:\n%s\nprinted:\n%s\nshown:\n%s", step.heading, why,
					step.commands, strings.Join(output, "\n"), strings.Join(step.output, "\n"))
			}
		}
	}
}

// shell is a folder in which commands are tried with the program under test.
type shell struct {
	dir        string
	env        []string
	smallDisks bool
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{dir: t.TempDir()}
	bin := t.TempDir() // The program is replaced in the course of an upgrade.
	program, err := os.ReadFile(harness.Binary(t))
	if err == nil {
		err = os.WriteFile(filepath.Join(bin, "idnode"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "IDNODE_") })
	s.env = append(s.env, "PATH="+bin+":"+os.Getenv("PATH"), "LC_ALL=C")
	disks := "SMALL_DISKS="
	if s.smallDisks = mayMount(t); s.smallDisks {
		disks += "yes"
		t.Cleanup(func() {
			for _, node := range []string{"A", "B", "C"} {
				_ = syscall.Unmount(filepath.Join(s.dir, node), syscall.MNT_DETACH) // Some are gone already.
			}
		})
	} else {
		t.Log("no small disks here (mount is not allowed): a full disk is not tried")
	}
	s.env = append(s.env, disks)
	return s
}

// mayMount says whether this process may make disks.
func mayMount(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	if syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") != nil {
		return false
	}
	return syscall.Unmount(dir, syscall.MNT_DETACH) == nil
}

// mark stands between the outputs of two steps.
const mark = "=== the next step ==="

// run does the steps in one shell, and returns what each printed. It ends at the
// first command that fails.
func (s *shell) run(t *testing.T, steps []procedure) [][]string {
	t.Helper()
	script := []string{"set -eu -o pipefail"}
	for _, step := range steps {
		script = append(script, "echo '"+mark+"'", step.commands)
	}
	ctx, cancel := context.WithTimeout(context.Background(), proceduresTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", strings.Join(script, "\n"))
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
		t.Fatalf("%s: %v\ncommands:\n%s\nprinted:\n%s\nerrors:\n%s\nlogs:\n%s", step.heading, err, step.commands, outputs[len(outputs)-1], stderr.String(), s.logs())
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

// differs compares what was printed with what is shown, by its shape. A line with
// nothing but … stands for any number of lines.
func differs(shown, printed []string) string {
	if len(shown) == 0 {
		if len(printed) > 0 {
			return "more was printed than is shown"
		}
		return ""
	}
	if shown[0] == "…" {
		for i := range len(printed) + 1 {
			if differs(shown[1:], printed[i:]) == "" {
				return ""
			}
		}
		return "nothing that was printed is like what is shown after …"
	}
	if len(printed) == 0 {
		return fmt.Sprintf("%q was not printed", shown[0])
	}
	if shape(shown[0]) != shape(printed[0]) {
		return fmt.Sprintf("%q is shown, %q was printed", shown[0], printed[0])
	}
	return differs(shown[1:], printed[1:])
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
		if why := differs(strings.Split(tt.shown, "\n"), strings.Split(tt.printed, "\n")); (why == "") != tt.same {
			t.Errorf("%q and %q: %q", tt.shown, tt.printed, why)
		}
	}
}
