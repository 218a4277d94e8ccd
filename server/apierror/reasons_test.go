package apierror

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEveryReasonIsOnThePageOfErrors holds the reasons of this package and the
// page that callers read together, in both directions.
func TestEveryReasonIsOnThePageOfErrors(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(declaredReasons(t), documentedReasons(string(page))); diff != "" {
		t.Errorf("(-reasons.go +docs/reference/errors.md):\n%s", diff)
	}
}

// declaredReasons returns the values of the constants in reasons.go, sorted.
func declaredReasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			reason, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, reason)
		}
		return true
	})
	slices.Sort(reasons)
	return reasons
}

var firstCell = regexp.MustCompile(`^\| ([A-Z_]+(?:, [A-Z_]+)*) \|`)

// documentedReasons returns the first cells of the page's tables that look like
// reasons, sorted, each once: some go with two codes.
func documentedReasons(page string) []string {
	var reasons []string
	for line := range strings.Lines(page) {
		if match := firstCell.FindStringSubmatch(line); match != nil {
			reasons = append(reasons, strings.Split(match[1], ", ")...)
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}
