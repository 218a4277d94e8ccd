// Package spec checks the models in this folder with Spin: each holds as it is written,
// and each fault that its header names breaks it. spec/README.md says what the
// models stand for.
package spec

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/test/tier"
)

// models has each model once for each of its worlds, and the faults that are found there.
var models = []struct {
	file, world string
	faults      []string
}{
	{file: "sessions.pml", world: "WINDOW", faults: []string{"NO_FLOOR", "LATE_FIRST", "COMMIT_BEYOND"}},
	{file: "sessions.pml", world: "STARTS", faults: []string{"NO_RESULTS", "NO_SEQUENCE", "NO_SESSION", "REQUEUE_TAINTED"}},
	{file: "hilo.pml", faults: []string{"NO_TOKEN", "NO_PEAK", "NOT_NEWEST", "LAST_BELOW", "MERGE_KEEPS", "SET_KEEPS"}},
	{file: "members.pml", faults: []string{"NO_GATE", "NO_LENGTH", "FORGETS"}},
	{file: "joining.pml", faults: []string{"TAG_WHERE_ASKED", "TAG_FREED", "TOKEN_WHERE_ASKED", "TOKEN_KEPT", "COMES_BACK"}},
	{file: "etags.pml", faults: []string{"BEFORE_WRITE", "NO_CEILING", "NO_COMPARISON", "NO_START_NUMBER", "STOP_UNCOMPARED", "KEEPS_CLEAN"}},
}

// reported is what remains of the time of the whole test when a search is ended, so that
// it tells how far it came. A search has no bound of its own: in CI the searches take the
// time that nobody else wants, and that can be none for minutes.
const reported = 10 * time.Second

func TestModels(t *testing.T) {
	tier.Long(t)
	for tool, what := range map[string]string{"spin": "Spin", "cc": "a C compiler, such as gcc or clang,"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the models are not checked, %s is not there: %v", what, err)
		}
	}
	for _, m := range models {
		name := strings.TrimSuffix(m.file, ".pml") + m.world
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := search(t, m.file, m.world)
			if found.errors != "0" || !found.complete {
				t.Errorf("the model does not hold, or was not explored to its end:\n%s", found.output)
			}
			t.Logf("%s states", found.states)
		})
		for _, fault := range m.faults {
			t.Run(name+"/"+fault, func(t *testing.T) {
				t.Parallel()
				found := search(t, m.file, m.world, fault)
				if found.errors != "1" || !strings.Contains(found.output, "assertion violated") {
					t.Errorf("the fault breaks no promise:\n%s", found.output)
				}
				t.Logf("found after %s states", found.states)
			})
		}
	}
}

// TestFaultsAreInTheHeaders: what a model's header promises to find is looked for, and
// what is looked for is in the model.
func TestFaultsAreInTheHeaders(t *testing.T) {
	listed := regexp.MustCompile(`(?m)^ \*   ([A-Z_]+) +[a-z]`)
	tried := map[string]map[string]bool{}
	for _, m := range models {
		if tried[m.file] == nil {
			tried[m.file] = map[string]bool{}
		}
		for _, fault := range m.faults {
			tried[m.file][fault] = true
		}
	}
	files, err := filepath.Glob("*.pml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text := read(t, file)
		for _, match := range listed.FindAllStringSubmatch(text, -1) {
			if !tried[file][match[1]] {
				t.Errorf("%s: no test tries the fault %s", file, match[1])
			}
			delete(tried[file], match[1])
		}
		for fault := range tried[file] {
			t.Errorf("%s: the header does not have the fault %s", file, fault)
		}
	}
}

// result is what a search printed.
type result struct {
	output, errors, states string
	// complete means that the search left nothing out.
	complete bool
}

var (
	errorsFound = regexp.MustCompile(`errors: (\d+)`)
	states      = regexp.MustCompile(`(\S+) states, stored`)
)

// search explores a model with these macros defined.
func search(t *testing.T, file string, macros ...string) result {
	t.Helper()
	model, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := []string{"-a"}
	for _, macro := range macros {
		if macro != "" {
			args = append(args, "-D"+macro)
		}
	}
	run(t, dir, "spin", append(args, model)...)
	run(t, dir, "cc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c")
	// A state from which nothing happens breaks no promise: -E.
	output := run(t, dir, "./pan", "-E", "-m500000", "-c1")
	found := result{
		output:   output,
		errors:   group(errorsFound, output),
		states:   group(states, output),
		complete: !strings.Contains(output, "max search depth too small") && !strings.Contains(output, "Search not completed"),
	}
	return found
}

func group(pattern *regexp.Regexp, text string) string {
	match := pattern.FindStringSubmatch(text)
	if match == nil {
		return ""
	}
	return match[1]
}

// run runs a command in a folder and returns what it printed.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx := t.Context()
	if end, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-reported))
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
	return string(output)
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
