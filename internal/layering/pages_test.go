package layering

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/raftlog"
)

// TestEveryPageIsLinked: docs/README.md leads to each page below docs/.
func TestEveryPageIsLinked(t *testing.T) {
	index := readPage(t, "README.md")
	walk(t, func(file string) {
		page, in := strings.CutPrefix(file, "docs/")
		if !in || path.Ext(file) != ".md" || page == "README.md" || path.Dir(page) == "adr" {
			return
		}
		if !strings.Contains(index, "]("+page+"): ") {
			t.Errorf("docs/README.md has no line for %s", page)
		}
	})
}

// pages is the folder whose pages are checked; that of the repository, or an unpacked archive.
var pages = flag.String("pages", root, "check the links of the pages in this folder")

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	anchorPattern  = regexp.MustCompile(`<a id="([^"]+)">`)
	headingPattern = regexp.MustCompile(`(?m)^#+ (.+)$`)
	codePattern    = regexp.MustCompile("(?s)\n```.*?\n```")
	notInAnchor    = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinksLead to a file or a folder, and to a heading of a page if they name one.
func TestLinksLead(t *testing.T) {
	links := 0
	err := filepath.WalkDir(*pages, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && strings.HasPrefix(e.Name(), ".") && file != *pages {
			return cmp.Or(err, fs.SkipDir)
		}
		if path.Ext(file) != ".md" {
			return nil
		}
		for _, m := range linkPattern.FindAllStringSubmatch(prose(t, file), -1) {
			if u, err := url.Parse(m[1]); err != nil || u.Scheme == "" {
				links++
				checkLink(t, file, m[1])
			}
		}
		return nil
	})
	if err != nil || links < 100 {
		t.Errorf("only %d links were found: %v", links, err)
	}
}

func checkLink(t *testing.T, page, link string) {
	t.Helper()
	target, anchor, _ := strings.Cut(link, "#")
	file := page
	if target != "" {
		file = filepath.Join(filepath.Dir(page), target)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("%s: %s leads nowhere", page, link)
	} else if anchor != "" && !slices.Contains(anchors(prose(t, file)), anchor) {
		t.Errorf("%s: %s names no heading of it", page, link)
	}
}

// prose is a page without its blocks of code.
func prose(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return codePattern.ReplaceAllString("\n"+string(text), "")
}

// anchors are a page's own, and the names that GitHub gives its headings.
func anchors(page string) []string {
	var all []string
	for _, a := range anchorPattern.FindAllStringSubmatch(page, -1) {
		all = append(all, a[1])
	}
	for _, h := range headingPattern.FindAllStringSubmatch(page, -1) {
		text := linkPattern.ReplaceAllString(h[1], "")
		all = append(all, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(text), ""), " ", "-"))
	}
	return all
}

// TestSupportNamesTheNewestFormat: the table of log formats ends with the newest.
func TestSupportNamesTheNewestFormat(t *testing.T) {
	_, table, _ := strings.Cut(readPage(t, "operate/support.md"), "\n## Log formats\n")
	table, _, _ = strings.Cut(table, "\n\n1. ")
	rows := strings.Split(table, "\n")
	if want := fmt.Sprintf("| %d | this release |", raftlog.FormatVersion); !strings.HasPrefix(rows[len(rows)-1], want) {
		t.Errorf("docs/operate/support.md: the last row is %q, want %q", rows[len(rows)-1], want)
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
