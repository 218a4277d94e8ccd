package layering

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// namedTest is a test as documents name it: alone or with its package.
	namedTest    = regexp.MustCompile("`((?:[a-z0-9/]+\\.)?Test[A-Za-z0-9_]+)`")
	declaredTest = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t \*testing\.T\)`)
)

// TestEveryThreatHasItsTest: each line of the page of threats names tests, and
// they exist.
func TestEveryThreatHasItsTest(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "test", "threats.md"))
	if err != nil {
		t.Fatal(err)
	}
	declared := declaredTests(t)
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| threat |") {
			continue
		}
		named := namedTest.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, match := range named {
			if !declared[match[1]] {
				t.Errorf("there is no %s: %s", match[1], line)
			}
		}
	}
}

// TestDocumentsNameTestsThatExist checks every document but the records of decisions,
// which stay as they were.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	declared := declaredTests(t)
	walk(t, func(file string) {
		if !strings.HasSuffix(file, ".md") || strings.HasPrefix(file, "docs/adr/") {
			return
		}
		page, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range namedTest.FindAllStringSubmatch(string(page), -1) {
			if !declared[match[1]] {
				t.Errorf("%s: there is no %s", file, match[1])
			}
		}
	})
}

// TestEveryPromiseHasItsEvidence: each promise of docs/promises.md has its section in the
// assurance case, and there at least one test with its package.
func TestEveryPromiseHasItsEvidence(t *testing.T) {
	promised, err := os.ReadFile(filepath.Join(root, "docs", "promises.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, promises, _ := strings.Cut(string(promised), "## What always holds\n")
	promises, _, _ = strings.Cut(promises, "\n## ")
	page, err := os.ReadFile(filepath.Join(root, "docs", "evidence", "assurance.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, sections, _ := strings.Cut(string(page), "## Each promise\n")
	sections, _, _ = strings.Cut(sections, "\n## ")
	argued := make(map[string]string)
	for _, section := range strings.Split(sections, "\n### ")[1:] {
		number, _, _ := strings.Cut(section, ". ")
		argued[number] = section
	}
	numbered := regexp.MustCompile(`(?m)^(\d+)\. `).FindAllStringSubmatch(promises, -1)
	if len(numbered) == 0 || len(argued) != len(numbered) {
		t.Errorf("docs/evidence/assurance.md argues for %d promises of %d", len(argued), len(numbered))
	}
	evidence := regexp.MustCompile("`[a-z0-9/]+\\.Test[A-Za-z0-9_]+`")
	for _, promise := range numbered {
		if !evidence.MatchString(argued[promise[1]]) {
			t.Errorf("docs/evidence/assurance.md names no test with its package for promise %s", promise[1])
		}
	}
}

// declaredTests are the names of all tests of the repository, alone and with their
// packages.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declared := make(map[string]bool)
	walk(t, func(file string) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declaredTest.FindAllSubmatch(text, -1) {
			declared[string(match[1])] = true
			declared[filepath.ToSlash(filepath.Dir(file))+"."+string(match[1])] = true
		}
	})
	return declared
}
