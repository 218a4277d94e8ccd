package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unequal are packages in which two nodes find different things.
var unequal = []string{"crypto/rand", "math/rand", "net", "os"}

// clock are the functions of package time that read the clock or wait for it.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// excused is the one place that may: a snapshot's records are decoded ahead, and used
// in their order.
var excused = map[string]string{"fsm/snapshotread.go": "starts a goroutine"}

// TestStateIsAFunctionOfTheLog checks the packages that every node must agree on: no
// clock, no chance, nothing of this machine, and no goroutines.
func TestStateIsAFunctionOfTheLog(t *testing.T) {
	rows := rowsByFolder(t)
	walk(t, func(file string) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || !rows[path.Dir(file)].pure {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join(root, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range impure(f) {
			if excused[file] != found.what {
				t.Errorf("%s:%d: %s", file, files.Position(found.at).Line, found.what)
			}
		}
	})
}

// TestPureRules tries the rules themselves.
func TestPureRules(t *testing.T) {
	for _, tt := range []struct {
		source string
		ok     bool
	}{
		{`import "time"; var d time.Duration; var when = time.Unix(1, 0)`, true},
		{`import "math/rand/v2"`, false},
		{`import "os/exec"`, false},
		{`import "net/netip"`, false},
		{`import . "time"`, false},
		{`import "time"; var now = time.Now()`, false},
		{`import "time"; var now = time.Now`, false},
		{`import clock "time"; func f() { clock.Sleep(1) }`, false},
		{`func f() { go f() }`, false},
		{`func f() { f() }`, true},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+tt.source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if found := impure(f); (len(found) == 0) != tt.ok {
			t.Errorf("%s: %v", tt.source, found)
		}
	}
}

// impurity is a place at which a state could depend on more than the log.
type impurity struct {
	at   token.Pos
	what string
}

func impure(f *ast.File) (all []impurity) {
	clockName := ""
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // The parser has read it.
		switch {
		case slices.ContainsFunc(unequal, func(p string) bool { return below(imported, p) }):
			all = append(all, impurity{spec.Pos(), "imports " + imported})
		case imported == "time" && spec.Name == nil:
			clockName = "time"
		case imported == "time":
			clockName = spec.Name.Name
		}
	}
	if clockName == "." {
		all = append(all, impurity{f.Pos(), "imports time without its name"})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			all = append(all, impurity{n.Pos(), "starts a goroutine"})
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == clockName && slices.Contains(clock, n.Sel.Name) {
				all = append(all, impurity{n.Pos(), "uses time." + n.Sel.Name})
			}
		}
		return true
	})
	return all
}
