package compat_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/compat"
)

// TestGoAPIKept: the exported names of the client's packages, with their types. What is made of the API's
// messages is not among them: TestMessagesKept has it.
func TestGoAPIKept(t *testing.T) {
	var names []string
	for _, folder := range []string{
		"client", "client/docid", "client/generator", "client/gormid", "client/snowflake", "client/snowflake/generator",
	} {
		files, err := filepath.Glob(root + folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files in %s, %v", len(files), folder, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.FileExports(file)
			for _, d := range file.Decls {
				names = append(names, declared(t, folder+": ", d)...)
			}
		}
	}
	compat.Names(t, compat.Clients, "go", names)
}

// declared are the lines of a declaration: a field of a struct has one of its own, so that more may come.
func declared(t *testing.T, folder string, declaration ast.Decl) (lines []string) {
	if f, ok := declaration.(*ast.FuncDecl); ok {
		f.Body = nil
		withoutNames(f.Type.Params, f.Type.Results, f.Recv)
		return []string{folder + text(t, f)}
	}
	d := declaration.(*ast.GenDecl)
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range s.Names {
				lines = append(lines, folder+d.Tok.String()+" "+name.Name)
			}
		case *ast.TypeSpec:
			structure, ok := s.Type.(*ast.StructType)
			if !ok {
				lines = append(lines, folder+"type "+text(t, s))
				continue
			}
			lines = append(lines, folder+"type "+s.Name.Name+" struct")
			for _, field := range structure.Fields.List {
				lines = append(lines, folder+s.Name.Name+" embeds "+text(t, field.Type))
				for i, name := range field.Names {
					if i == 0 {
						lines = lines[:len(lines)-1]
					}
					lines = append(lines, folder+s.Name.Name+"."+name.Name+" "+text(t, field.Type))
				}
			}
		}
	}
	return lines
}

// withoutNames takes the names of parameters away, which callers do not write.
func withoutNames(lists ...*ast.FieldList) {
	for _, list := range lists {
		if list == nil {
			continue
		}
		var all []*ast.Field
		for _, field := range list.List {
			for range max(1, len(field.Names)) {
				all = append(all, &ast.Field{Type: field.Type})
			}
		}
		list.List = all
	}
}

// text is a declaration in one line.
func text(t *testing.T, node ast.Node) string {
	t.Helper()
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), node); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
