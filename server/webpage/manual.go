package webpage

import (
	"bytes"
	_ "embed"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/idnode/idnode/docs"
)

// manual is where the pages of docs are, under their own names, so that links between them hold.
const manual = "/docs/"

//go:embed manual.css
var manualStyle []byte

// HandleManual adds the pages of docs by handle, which takes patterns of http.ServeMux. A page is made
// when it is first asked for.
func HandleManual(handle func(pattern string, handler http.Handler)) {
	handle("GET "+manual+"manual.css", asset(".css", manualStyle))
	err := fs.WalkDir(docs.Pages, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source, err := docs.Pages.ReadFile(name)
		page := sync.OnceValue(func() http.Handler { return asset(".html", manualPage(name, source)) })
		handle("GET "+manual+name, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { page().ServeHTTP(w, r) }))
		return err
	})
	if err != nil {
		panic(err) // The files are part of the program.
	}
}

func manualPage(name string, source []byte) []byte {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(
		parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(deadLinks{path.Dir(name)}, 0)),
	))
	var page bytes.Buffer
	page.WriteString(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>` +
		html.EscapeString(name) + `</title><link rel="stylesheet" href="` + manual + `manual.css"><main>`)
	_ = markdown.Convert(source, &page) // A buffer takes all.
	page.WriteString("</main></html>\n")
	return page.Bytes()
}

// deadLinks replaces images, and links of a page in the folder to files that the node does not serve, by their text.
type deadLinks struct{ folder string }

// Transform implements parser.ASTTransformer.
func (d deadLinks) Transform(page *ast.Document, _ text.Reader, _ parser.Context) {
	var dead []ast.Node
	_ = ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // It returns the function's errors.
		link, ok := n.(*ast.Link)
		if _, image := n.(*ast.Image); entering && (image || ok && !d.leads(string(link.Destination))) {
			dead = append(dead, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range dead {
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			n.Parent().InsertBefore(n.Parent(), n, child)
		}
		n.Parent().RemoveChild(n.Parent(), n)
	}
}

func (d deadLinks) leads(target string) bool {
	file, _, _ := strings.Cut(target, "#")
	_, err := fs.Stat(docs.Pages, path.Join(d.folder, file))
	return file == "" || strings.Contains(target, "://") || err == nil && strings.HasSuffix(file, ".md")
}
