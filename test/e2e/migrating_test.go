package e2e

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/tier"
)

const migratingDoc = "../../docs/start/migrating.md"

// TestMigrating does what docs/start/migrating.md says, with a PostgreSQL, a Redis and a
// cluster of three nodes: once in quiet, where what is printed is what the document
// shows, number by number, and once while callers take numbers from the old counters.
func TestMigrating(t *testing.T) {
	tier.Long(t)
	needPrograms(t, "bash", "psql", "redis-server", "redis-cli", "gzip")
	text, err := os.ReadFile(migratingDoc)
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	old := startOldCounters(t, s)
	s.startDev(t)

	old.begin(t, s, "shop", 0)
	steps := stepsOf(t, string(text))
	for i, output := range s.run(t, steps) {
		steps[i].compare(t, output, words)
	}

	old.begin(t, s, "mill", 1)
	steps = stepsOf(t, strings.ReplaceAll(string(text), "shop", "mill"))
	taken := old.callers(t, s, "mill", 1)
	outputs := s.run(t, steps)
	for name, numbers := range taken() {
		if len(numbers) == 0 {
			t.Errorf("nobody took a number of %s from the old counter", name)
		}
		unique(t, name, append(numbers, idsOf(name, outputs)...))
	}
}

// words is a line without the width of its columns.
func words(line string) string { return strings.Join(strings.Fields(line), " ") }

// idsOf returns the numbers of the ids that were printed.
func idsOf(name string, outputs [][]string) (numbers []string) {
	id := regexp.MustCompile(`^` + name + `/(\d+)$`)
	for _, output := range outputs {
		for _, line := range output {
			if m := id.FindStringSubmatch(line); m != nil {
				numbers = append(numbers, m[1])
			}
		}
	}
	return numbers
}

func unique(t *testing.T, name string, numbers []string) {
	t.Helper()
	slices.Sort(numbers)
	if once := slices.Compact(slices.Clone(numbers)); len(once) < len(numbers) {
		t.Errorf("%s: %d of %d numbers were given twice: %v", name, len(numbers)-len(once), len(numbers), numbers)
	}
}
