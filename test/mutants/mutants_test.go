package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/mutants/patches"
)

// TestEachPatchIsListed finds bugs without a patch, and patches without a line in
// the list.
func TestEachPatchIsListed(t *testing.T) {
	var listed []string
	for _, b := range bugs {
		listed = append(listed, b.name)
	}
	slices.Sort(listed)
	if names := patches.Names(); !slices.Equal(listed, names) {
		t.Errorf("listed are\n%s\nand there are patches of\n%s", listed, names)
	}
}

func TestExplain(t *testing.T) {
	for _, tt := range []struct{ name, output, test, saw string }{
		{
			"a seed", "--- FAIL: TestSeeds (1s)\n    --- FAIL: TestSeeds/seeds (0s)\n        --- FAIL: TestSeeds/seeds/356 (0.1s)\n" +
				"            simulation_test.go:130: etags/twice: 1 and 1\n                more\n",
			"simulation, seed 356", "etags/twice: 1 and 1",
		},
		{"a panic", "panic: runtime error: no\n\ngoroutine 1", "test/simulation", "panic: runtime error: no"},
		{"nothing", "FAIL\n", "test/simulation", "it ended in the middle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if test, saw := explain(simulation, tt.output); test != tt.test || saw != tt.saw {
				t.Errorf("explain: %q, %q; want %q, %q", test, saw, tt.test, tt.saw)
			}
		})
	}
}

// TestScore: a bug that nobody found is counted, and is an error.
func TestScore(t *testing.T) {
	verdicts := []verdict{{name: "a", by: "simulation, seed 3"}, {name: "b"}}
	if got := score(verdicts); !strings.HasPrefix(got, "1 of 2 planted bugs were found, 1 of them by the simulation") {
		t.Error(got)
	}
	if survivors(verdicts) == nil {
		t.Error("a bug that nobody found is no error")
	}
}
