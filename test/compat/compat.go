// Package compat compares what the program writes, says and is called by with the files of a release in a
// folder beside it, which `make golden` wrote. A test that fails names the sentence of docs/operate/support.md
// that would no longer be true.
package compat

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden is for the day of a release: the files are written anew, and compared with nothing.
var golden = flag.Bool("golden", false, "write the files of test/compat")

// Promise is a sentence of the page.
type Promise string

// The promises. Each stands on the page, word by word.
const (
	Data Promise = "A program reads what an earlier one of 1.x wrote: " +
		"data directory, log, snapshot, backup, export, audit log, contexts, certificates."
	Equal    Promise = "The same log entries make the same state."
	Wire     Promise = "Fields, methods and enum values keep name, number and type, in JSON and in protobuf."
	Reasons  Promise = "Reasons of errors keep their names."
	Commands Promise = "Commands, flags, settings, variables and exit codes stay."
	Watched  Promise = "Metrics, alerts and audit events keep their names and labels."
	Clients  Promise = "Public names of the clients keep their parameters, in Go their types."
	Nodes    Promise = "a release and the one before it may be in one cluster for any time."
)

// at returns the path of a file of the repository. A test runs in the folder of its package, below that of go.mod.
func at(t testing.TB, name string) string {
	t.Helper()
	root, err := filepath.Abs(".")
	for ; err == nil; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Join(root, filepath.FromSlash(name))
		}
		if root == filepath.Dir(root) {
			break
		}
	}
	t.Fatalf("no go.mod above the test's folder (%v)", err)
	return ""
}

// Names checks that all that a file lists is still there; more may be. The file has a name on each line.
func Names(t testing.TB, p Promise, file string, now []string) {
	t.Helper()
	slices.Sort(now)
	now = slices.Compact(now)
	stood := File(t, p, file, []byte(strings.Join(now, "\n")+"\n"))
	for line := range strings.Lines(string(stood)) {
		name := strings.TrimSuffix(line, "\n")
		if _, found := slices.BinarySearch(now, name); !found {
			t.Errorf("%q would be broken: %s had %s", p, file, name)
		}
	}
}

// Golden reports whether the files are written.
func Golden() bool { return *golden }

// Files are the names of the files in a folder of the release.
func Files(t testing.TB, folder string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(at(t, "test/compat/v1.0/"+folder))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names
}

// File returns a file of the release. Where the files are written, it is now, unless that is nil.
func File(t testing.TB, p Promise, file string, now []byte) []byte {
	t.Helper()
	text, err := os.ReadFile(at(t, "docs/operate/support.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), string(p)) {
		t.Errorf("docs/operate/support.md does not have the sentence %q", p)
	}
	name := at(t, "test/compat/v1.0/"+file)
	if *golden && now != nil {
		if err = os.MkdirAll(filepath.Dir(name), 0o755); err == nil {
			err = os.WriteFile(name, now, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%q: %v", p, err)
	}
	return kept
}
