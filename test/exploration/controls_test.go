package exploration

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/mutants/patches"
	"github.com/idnode/idnode/test/tier"
)

// controls are planted bugs, each with a scenario that must find it, and what is found.
var controls = []struct{ bug, scenario, finds string }{
	{"session-forgotten", "IDENTITY", "takes effect at log index"},
	{"retry-under-new-number", "IDENTITY", "takes effect at log index"},
	{"number-used-again", "NUMBERS", "which is the answer to another call"},
	{"stale-session-requeued", "RESTART", "takes effect at log index"},
	{"unknown-is-failed", "IDENTITY", "takes effect at log index"},
	{"request-window-drops-newest", "WINDOW", "takes effect at log index"},
	{"delayed-first-try", "WINDOW", "takes effect at log index"},
	{"requests-not-restored", "SNAPSHOT", "the states of"},
	{"start-forgets-requests", "RESTORE", "the states of"}, // and in no other scenario
	{"recovery-index-stays", "RECOVERY", "and took effect as"},
	{"return-late", "HILO", "a number of a range in use comes again"},
	{"return-foreign", "TOKEN", "a number of a range in use comes again"},
	{"peak-forgotten", "HILO", "a number of a range in use comes again"},
	{"merge-keeps-ranges", "MERGE", "a number comes that a merge says is taken"},
	{"key-asked-for-twice", "SERIES", "two documents have one number, or one has two"},
	{"released-forgotten-by-restore", "RELEASE", "the states of"},
	{"unknown-forgotten-by-snapshot", "RELEASE", "the state's hash is"},
	{"released-given-after-restore", "SERIES", "a number comes that a document may have since before a restore"},
	{"entered-number-has-two-keys", "ELSEWHERE", "two documents have one number, or one has two"},
	{"used-up-allotment-gives", "ALLOTMENT", "a number comes that no range has on that day"},
	{"merged-allotment-forgets-begin", "BACKUPS", "a number comes that is used, or past, in a merged backup"},
	{"window-handed-on-early", "WORKER", "a time of a worker is leased twice"},
	{"release-forgets-last", "WORKER", "a time of a worker is leased twice"},
	{"claim-not-stepped-over", "CLAIM", "a claimed id is given again"},
	{"issued-is-claimed", "CLAIM", "an id that an identity gave is claimed"},
}

// Each planted bug is found, or the exploration says nothing about its rule.
func TestPlantedBugsAreFound(t *testing.T) {
	tier.Long(t)
	for _, c := range controls {
		t.Run(c.bug, func(t *testing.T) {
			story := explorePlanted(t, c.bug, c.scenario)
			if !strings.Contains(story, c.finds) {
				t.Errorf("found something else than %q", c.finds)
			}
			t.Log(story)
		})
	}
}

// explorePlanted explores a scenario of a program with a bug, and returns what is found.
func explorePlanted(t *testing.T, bug, scenario string) string {
	t.Helper()
	patch, err := patches.Read(bug)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay, err := patches.Overlay(dir, patch)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "exploration.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program, "-test.run", "TestScenarios$", "-scenario", scenario).CombinedOutput()
	if _, failed := err.(*exec.ExitError); !failed {
		t.Fatalf("%s is not found in %s: %v\n%s", patch.What, scenario, err, out)
	}
	return string(out)
}
