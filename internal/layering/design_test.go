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

// quotedPath is a path of the repository as a page quotes it: it has a slash.
var quotedPath = regexp.MustCompile("`([A-Za-z0-9_.-]+/[A-Za-z0-9_./-]*)`")

// TestDesignHasEveryPackage: each folder with Go files has its line among the
// parts, on its floor.
func TestDesignHasEveryPackage(t *testing.T) {
	floors, floor := make(map[string]int), -1
	for line := range strings.Lines(sectionOf(t, "docs/design.md", "## The parts, ground floor first")) {
		if text, ok := strings.CutPrefix(line, "### Floor "); ok {
			floor, _ = strconv.Atoi(strings.TrimSpace(text))
		}
		folders, _, ok := strings.Cut(line, ": ")
		for _, match := range quotedPath.FindAllStringSubmatch(folders, -1) {
			if ok && strings.HasPrefix(line, "* ") {
				floors[path.Clean(match[1])] = floor
			}
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

// TestContributingNamesFilesThatExist checks the table of what is changed where.
func TestContributingNamesFilesThatExist(t *testing.T) {
	var names int
	for line := range strings.Lines(sectionOf(t, "CONTRIBUTING.md", "## Where do I change …")) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, match := range quotedPath.FindAllStringSubmatch(line, -1) {
			names++
			if _, err := fs.Stat(os.DirFS(root), path.Clean(match[1])); err != nil {
				t.Errorf("CONTRIBUTING.md: %v", err)
			}
		}
	}
	if names == 0 {
		t.Error("CONTRIBUTING.md names no files")
	}
}

// sectionOf returns what stands under a heading of a page.
func sectionOf(t *testing.T, name, heading string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", name, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}
