package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// mutant is one planted bug.
type mutant struct {
	// constant is its name in package mutant, name the one in the environment.
	constant, name string
	// what says what the program does wrong.
	what string
}

// readMutants reads the bugs from the file with their names: each constant has a
// comment that begins with it.
func readMutants(path string) ([]mutant, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			m, err := mutantOf(s.(*ast.ValueSpec))
			if err != nil {
				return nil, err
			}
			mutants = append(mutants, m)
		}
	}
	return mutants, nil
}

func mutantOf(s *ast.ValueSpec) (mutant, error) {
	m := mutant{constant: s.Names[0].Name}
	doc := strings.Join(strings.Fields(s.Doc.Text()), " ")
	what, ok := strings.CutPrefix(strings.TrimSuffix(doc, "."), m.constant+" ")
	literal, isLiteral := s.Values[0].(*ast.BasicLit)
	if !ok || !isLiteral {
		return m, fmt.Errorf("%s: the comment must begin with the name, and the value be a text", m.constant)
	}
	var err error
	m.what = what
	m.name, err = strconv.Unquote(literal.Value)
	return m, err
}
