package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fieldsWord has, for words that only this program used, the word of the field.
var fieldsWord = map[string]string{
	"anchor": "boundary", "cable": "network fault", "carrier": "group sender", "census": "member pinger",
	"company": "linger", "govern": "leader loop", "office": "leadership", "reign": "leadership",
	"trail": "span", "wedge": "stuck transfer",
}

// camelWord is one word of an identifier.
var camelWord = regexp.MustCompile(`[A-Z]?[a-z]+`)

// TestNamesAreTheFieldsOwn checks the identifiers that the product's files declare.
func TestNamesAreTheFieldsOwn(t *testing.T) {
	walk(t, func(file string) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join(root, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range ownNames(f) {
			for _, word := range camelWord.FindAllString(name.Name, -1) {
				if better := fieldsWord[strings.ToLower(word)]; better != "" {
					t.Errorf("%s:%d: %s: the field's word is %s", file, files.Position(name.Pos()).Line, name.Name, better)
				}
			}
		}
	})
}

// ownNames returns the identifiers of a file, except those after a dot: others may
// have declared them.
func ownNames(f *ast.File) (names []*ast.Ident) {
	selected := map[*ast.Ident]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			selected[n.Sel] = true
		case *ast.Ident:
			if !selected[n] {
				names = append(names, n)
			}
		}
		return true
	})
	return names
}
