package httpapi

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/compat"
)

// TestRavenDBKept has the conversations of the release. An answer's status, type and reason are as they were, and so is
// each field; there may be more of them.
func TestRavenDBKept(t *testing.T) {
	if compat.Golden() {
		files, _ := filepath.Glob("testdata/*.txt")
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compat.File(t, compat.Wire, "ravendb/"+filepath.Base(file), text)
		}
	}
	for _, name := range compat.Files(t, "ravendb") {
		stood := string(compat.File(t, compat.Wire, "ravendb/"+name, nil))
		was, is := strings.Split(stood, "\n"), strings.Split(newTranscript(t).play(stood), "\n")
		if len(was) != len(is) {
			t.Fatalf("%q would be broken: %s has other answers", compat.Wire, name)
		}
		for i := range was {
			now := parts(t, is[i])
			for _, part := range parts(t, was[i]) {
				if !slices.Contains(now, part) {
					t.Errorf("%q would be broken: %s:%d had %s, and is\n%s", compat.Wire, name, i+1, part, is[i])
				}
			}
		}
	}
}

// head is what an answer has before its body or, if it is an error, its words: status, header, type and reason.
var head = regexp.MustCompile(`^\d{3}( Refresh-Topology=\S+)?( \S+ \|( [A-Z_]+:)?)?`)

// parts are what is kept of a line: all of one that is no answer.
func parts(t *testing.T, line string) []string {
	before := head.FindString(line)
	rest := strings.TrimSpace(line[len(before):])
	switch {
	case strings.HasPrefix(rest, "{"):
		return append(compat.JSON(t, "", rest, false), before)
	case strings.Contains(before, "|"):
		return []string{before}
	}
	return []string{line}
}
