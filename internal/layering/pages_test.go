package layering

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
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
