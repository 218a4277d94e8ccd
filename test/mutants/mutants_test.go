package main

import (
	"os"
	"path/filepath"
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

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "document.md")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + beginMark + "old\n" + endMark + "\nafter\n")
	verdicts := []verdict{{name: "a", what: "adds", by: "simulation, seed 3", saw: "x|y"}, {name: "b"}}
	if err := writeTable(path, verdicts); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n" + beginMark, "1 of 2 planted bugs", `| a | adds | simulation, seed 3 | 0s | x\|y |`, "**nobody**", endMark + "\nafter\n"} {
		if !strings.Contains(string(document), want) {
			t.Errorf("the document lacks %q:\n%s", want, document)
		}
	}
	if strings.Contains(string(document), "old") {
		t.Error("the old table is still there")
	}
	if survivors(verdicts) == nil {
		t.Error("a bug that nobody found is no error")
	}
	write("nothing")
	if writeTable(path, verdicts) == nil {
		t.Error("a document without the marks was written")
	}
}
