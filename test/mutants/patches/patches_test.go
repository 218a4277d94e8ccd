package patches

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/tier"
)

const module = "github.com/idnode/idnode/"

func root(t *testing.T) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func all(t *testing.T) []Patch {
	t.Helper()
	var all []Patch
	for _, name := range Names() {
		p, err := Read(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// TestPatchesFit: each patch has its one place, and what it does there is more than
// another way to write the code, and no other patch's bug.
func TestPatchesFit(t *testing.T) {
	root, same := root(t), map[string]string{}
	for _, p := range all(t) {
		t.Run(p.Name, func(t *testing.T) {
			dir := t.TempDir()
			if err := p.plant(root, dir); err != nil {
				t.Fatal(err)
			}
			var planted strings.Builder
			for _, f := range p.Files {
				was, is := code(t, filepath.Join(root, f)), code(t, filepath.Join(dir, f))
				if was == is {
					t.Errorf("%s is the same code with the bug", f)
				}
				fmt.Fprintln(&planted, f, is)
			}
			if other := same[planted.String()]; other != "" {
				t.Errorf("it is the same bug as %s", other)
			}
			same[planted.String()] = p.Name
			fitsOnce(t, p, dir)
		})
	}
}

// fitsOnce tries the patch on files that have the bug. A part of it that fits again
// could some day be planted at the wrong place.
func fitsOnce(t *testing.T, p Patch, dir string) {
	t.Helper()
	var before []string
	for _, f := range p.Files {
		before = append(before, read(t, filepath.Join(dir, f)))
	}
	out, _ := p.apply(dir, "--reject")
	for i, f := range p.Files {
		if read(t, filepath.Join(dir, f)) != before[i] {
			t.Errorf("it fits at two places of %s, and needs more lines around it:\n%s", f, out)
		}
	}
}

// code is a file without comments and spaces.
func code(t *testing.T, file string) string {
	t.Helper()
	text := []byte(read(t, file))
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile(file, -1, len(text)), text, nil, 0)
	var b strings.Builder
	for {
		_, tok, literal := s.Scan()
		if tok == token.EOF {
			return b.String()
		}
		fmt.Fprintln(&b, tok, literal)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPatchesCompile builds the product with as many bugs at a time as change
// different files.
func TestPatchesCompile(t *testing.T) {
	tier.Long(t)
	root := root(t)
	readProduct(t, root)
	for _, batch := range batches(all(t)) {
		overlay, err := Overlay(t.TempDir(), batch...)
		if err != nil {
			t.Error(err)
			continue
		}
		args := append([]string{"build", "-overlay", overlay}, packages(batch)...)
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("with %s: %v\n%s", suspects(batch, string(out)), err, out)
		}
	}
}

// batches puts each patch into the first batch in which no other changes its files.
func batches(all []Patch) (batches [][]Patch) {
next:
	for _, p := range all {
		for i, batch := range batches {
			if !slices.ContainsFunc(batch, func(other Patch) bool { return overlap(p, other) }) {
				batches[i] = append(batch, p)
				continue next
			}
		}
		batches = append(batches, []Patch{p})
	}
	return batches
}

func overlap(a, b Patch) bool {
	return slices.ContainsFunc(a.Files, func(f string) bool { return slices.Contains(b.Files, f) })
}

// packages are those that a batch changes.
func packages(batch []Patch) (paths []string) {
	for _, p := range batch {
		for _, f := range p.Files {
			if folder := module + path.Dir(f); !slices.Contains(paths, folder) {
				paths = append(paths, folder)
			}
		}
	}
	return paths
}

// readProduct reads all Go files, so that the go command does not take the result of
// a test before they changed for this one's.
func readProduct(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			read(t, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// suspects are the patches of a batch that change a file that the compiler names, or
// all of them.
func suspects(batch []Patch, output string) string {
	var named, all []string
	for _, p := range batch {
		all = append(all, p.Name)
		if slices.ContainsFunc(p.Files, func(f string) bool { return strings.Contains(output, f+":") }) {
			named = append(named, p.Name)
		}
	}
	if named == nil {
		named = all
	}
	return strings.Join(named, ", ")
}
