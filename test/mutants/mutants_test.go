package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository's.
const root = "../.."

func all(t *testing.T) []mutant {
	t.Helper()
	mutants, err := readMutants(filepath.Join(root, "internal/mutant/names.go"))
	if err != nil {
		t.Fatal(err)
	}
	return mutants
}

// TestEachMutantStandsInOnePlace finds bugs that nobody plants, two with one name,
// and names in the tables here that are gone.
func TestEachMutantStandsInOnePlace(t *testing.T) {
	uses := map[string]int{}
	for _, m := range all(t) {
		uses[m.constant] = 0
	}
	product(t, func(text string) {
		for constant := range uses {
			uses[constant] += strings.Count(text, "mutant.On(mutant."+constant+")")
		}
	})
	for constant, n := range uses {
		if n == 0 {
			t.Errorf("%s is planted nowhere", constant)
		}
	}
	var names []string
	for _, m := range all(t) {
		if slices.Contains(names, m.name) {
			t.Errorf("two bugs have the name %s", m.name)
		}
		names = append(names, m.name)
	}
	for _, name := range quick {
		if !slices.Contains(names, name) {
			t.Errorf("there is no bug %s", name)
		}
	}
	for constant := range others {
		if _, ok := uses[constant]; !ok {
			t.Errorf("there is no bug %s", constant)
		}
	}
}

// product hands over the text of each Go file of the product.
func product(t *testing.T, look func(text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		look(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
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

func TestPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + beginMark + "old\n" + endMark + "\nafter\n")
	verdicts := []verdict{{mutant: mutant{name: "a", what: "adds"}, by: "simulation, seed 3", saw: "x|y"}, {mutant: mutant{name: "b"}}}
	if err := writePage(path, verdicts); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n" + beginMark, "1 of 2 planted bugs", `| a | adds | simulation, seed 3 | 0s | x\|y |`, "**nobody**", endMark + "\nafter\n"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(string(page), "old") {
		t.Error("the old table is still there")
	}
	if survivors(verdicts) == nil {
		t.Error("a bug that nobody found is no error")
	}
	write("nothing")
	if writePage(path, verdicts) == nil {
		t.Error("a page without the marks was written")
	}
}
