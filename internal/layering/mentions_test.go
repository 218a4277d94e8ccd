package layering

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// elsewhere has texts that refer to places outside the repository, which a
// reader of it does not have. They are written in two halves, so that this file
// is none of the finds.
var elsewhere = []string{
	"DESIGN" + ".md", "RAFT" + ".md", "RAVENDB" + ".md", "FAULTS" + ".md", "STYLE" + ".md",
	".." + "/shared", "/work" + "/main", "/work" + "/shared", "/tmp" + "/contract", "/tmp" + "/tools-bin",
}

// TestNothingRefersElsewhere checks every text file of the repository.
func TestNothingRefersElsewhere(t *testing.T) {
	walk(t, func(file string) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(text) {
			return
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			for _, e := range elsewhere {
				if strings.Contains(string(line), e) {
					t.Errorf("%s:%d mentions %s", file, i+1, e)
				}
			}
		}
	})
}
