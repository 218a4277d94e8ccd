package layering

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// quotedPath is a path of the repository as docs/design.md quotes it: it has a slash.
var quotedPath = regexp.MustCompile("`([A-Za-z0-9_.-]+/[A-Za-z0-9_./-]*)`")

// TestDesignHasEveryPackage: each folder with Go files has its row in the table of
// parts, on its floor.
func TestDesignHasEveryPackage(t *testing.T) {
	floors := make(map[string]int)
	for _, row := range tableUnder(t, "## The parts, ground floor first") {
		cells := strings.Split(row, "|")
		floor, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue // The head of the table.
		}
		for _, match := range quotedPath.FindAllStringSubmatch(cells[2], -1) {
			floors[path.Clean(match[1])] = floor
		}
	}
	folders := make(map[string]bool)
	walk(t, func(file string) {
		if strings.HasSuffix(file, ".go") {
			folders[path.Dir(file)] = true
		}
	})
	rows := rowsByFolder(t)
	for folder := range folders {
		floor, ok := floors[folder]
		if row, listed := rows[folder]; !ok || listed && row.floor != floor {
			t.Errorf("docs/design.md does not have %s on floor %d", folder, row.floor)
		}
	}
	for folder := range floors {
		if !folders[folder] {
			t.Errorf("docs/design.md has %s, which has no Go files", folder)
		}
	}
}

// TestDesignNamesFilesThatExist checks the table of what is changed where.
func TestDesignNamesFilesThatExist(t *testing.T) {
	var names int
	for _, row := range tableUnder(t, "## Where do I change …") {
		for _, match := range quotedPath.FindAllStringSubmatch(row, -1) {
			names++
			if _, err := fs.Stat(os.DirFS(root), path.Clean(match[1])); err != nil {
				t.Errorf("docs/design.md: %v", err)
			}
		}
	}
	if names == 0 {
		t.Error("docs/design.md names no files")
	}
}

// tableUnder returns the rows of the tables under a heading of docs/design.md.
func tableUnder(t *testing.T, heading string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), heading+"\n")
	if !ok {
		t.Fatalf("docs/design.md has no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, line)
		}
	}
	return rows
}
