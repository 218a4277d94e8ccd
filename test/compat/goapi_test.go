package compat_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/compat"
)

// TestGoAPIKept: the exported names of the client and of the plugin for GORM, with their types. What is made
// of the API's messages is not among them: TestMessagesKept has it.
func TestGoAPIKept(t *testing.T) {
	names := exported(t, "client", "client: ")
	aliases := make(map[string]string)
	for _, line := range names {
		if alias, name, ok := strings.Cut(line, " = generator."); ok {
			aliases[name] = strings.TrimPrefix(alias, "client: type ")
		}
	}
	for _, line := range exported(t, "client/generator", "client: ") {
		at := owner.FindStringSubmatchIndex(line)
		if alias := aliases[line[at[2]:at[3]]]; alias != "" {
			names = append(names, line[:at[2]]+alias+line[at[3]:])
		}
	}
	compat.Names(t, compat.Clients, "go", append(names, exported(t, "client/gormid", "client/gormid: ")...))
}

// owner finds the type to which a line belongs.
var owner = regexp.MustCompile(`^client: (?:type |func \(\*?)?(\w+)`)

// exported are the lines of a package.
func exported(t *testing.T, folder, before string) (lines []string) {
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
			lines = append(lines, declared(t, before, d)...)
		}
	}
	return lines
}

// declared are the lines of a declaration: a field of a struct has one of its own, so that more may come.
func declared(t *testing.T, folder string, declaration ast.Decl) (lines []string) {
	if f, ok := declaration.(*ast.FuncDecl); ok {
		if f.Recv != nil && !ast.IsExported(strings.TrimPrefix(text(t, f.Recv.List[0].Type), "*")) {
			return nil
		}
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
