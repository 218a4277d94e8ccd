package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the import path of the repository's root.
const module = "github.com/idnode/idnode"

// pkg is what the tests read of one package. Test files are left out: tests may
// import what they like.
type pkg struct {
	folder  string
	files   []*ast.File
	imports map[string]string // import path to a file that has it
}

// TestImports checks every import of the repository against the table of
// parts.
func TestImports(t *testing.T) {
	rows := rowsByFolder(t)
	for _, p := range packages(t) {
		row, ok := rows[p.folder]
		if !ok {
			t.Errorf("%s is in no row of parts: decide on which floor it belongs", p.folder)
			continue
		}
		for imported, file := range p.imports {
			if why := row.refuse(rows, imported); why != "" {
				t.Errorf("%s imports %s: %s", file, imported, why)
			}
		}
	}
}

// TestPartsExist finds rows whose package is gone.
func TestPartsExist(t *testing.T) {
	found := make(map[string]bool)
	for _, p := range packages(t) {
		found[p.folder] = true
	}
	for _, row := range parts {
		if !found[row.folder] && !onlyTests(t, row.folder) {
			t.Errorf("parts has a row for %s, which has no Go file", row.folder)
		}
	}
}

// TestPackagesSayWhatTheyAre checks that every package has a doc comment.
func TestPackagesSayWhatTheyAre(t *testing.T) {
	for _, p := range packages(t) {
		doc := ""
		for _, f := range p.files {
			doc += f.Doc.Text()
		}
		name := p.files[0].Name.Name
		want := "Package " + name + " "
		if name == "main" {
			want = "Command " + path.Base(p.folder) + " "
		}
		if !strings.HasPrefix(doc, want) {
			t.Errorf("%s: the package comment must begin with %q", p.folder, want)
		}
	}
}

// TestRules tries the rules themselves.
func TestRules(t *testing.T) {
	rows := map[string]part{
		"low":     {folder: "low", floor: 0},
		"low/sub": {folder: "low/sub", floor: 0},
		"mid":     {folder: "mid", floor: 1, not: []string{"low"}, modules: []string{"example.org/a"}},
		"high":    {folder: "high", floor: 2, beside: []string{"wing"}},
		"wing":    {folder: "wing", floor: 2},
	}
	tests := []struct {
		from, to string
		ok       bool
	}{
		{"high", module + "/low", true},
		{"high", module + "/mid", true},
		{"high", module + "/wing", true},
		{"wing", module + "/high", false},
		{"low", module + "/high", false},
		{"mid", module + "/low", false},
		{"mid", module + "/low/sub", false},
		{"mid", "example.org/a", true},
		{"mid", "example.org/a/b", true},
		{"mid", "example.org/ab", false},
		{"low", "example.org/a", false},
		{"low", "net/http", true},
		{"high", module + "/unknown", false},
	}
	for _, tt := range tests {
		why := rows[tt.from].refuse(rows, tt.to)
		if (why == "") != tt.ok {
			t.Errorf("%s imports %s: %q", tt.from, tt.to, why)
		}
	}
}

// refuse says why p may not import the package, or "".
func (p part) refuse(rows map[string]part, imported string) string {
	own, inside := strings.CutPrefix(imported, module+"/")
	if !inside {
		return p.refuseForeign(imported)
	}
	target, ok := rows[own]
	switch {
	case !ok:
		return "it is in no row of parts"
	case slices.ContainsFunc(p.not, func(f string) bool { return below(own, f) }):
		return "its row forbids that"
	case target.floor < p.floor || slices.Contains(p.beside, own):
		return ""
	default:
		return "that is not on a lower floor"
	}
}

func (p part) refuseForeign(imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	standard := !strings.Contains(first, ".")
	if standard || slices.ContainsFunc(p.modules, func(m string) bool { return below(imported, m) }) {
		return ""
	}
	return "its row does not allow that module"
}

// below says whether name is folder or lies in it.
func below(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

func rowsByFolder(t *testing.T) map[string]part {
	t.Helper()
	rows := make(map[string]part)
	for _, row := range parts {
		if _, twice := rows[row.folder]; twice {
			t.Errorf("parts has two rows for %s", row.folder)
		}
		rows[row.folder] = row
	}
	return rows
}

// packages parses the heads of all Go files but tests. Reading the files rather
// than asking the Go tool sees those of other systems and build tags too.
func packages(t *testing.T) []*pkg {
	t.Helper()
	byFolder := make(map[string]*pkg)
	walk(t, func(file string) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return
		}
		folder := path.Dir(file)
		p := byFolder[folder]
		if p == nil {
			p = &pkg{folder: folder, imports: make(map[string]string)}
			byFolder[folder] = p
		}
		p.read(t, file)
	})
	var all []*pkg
	for _, p := range byFolder {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pkg) int { return strings.Compare(a.folder, b.folder) })
	return all
}

func (p *pkg) read(t *testing.T, file string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	p.files = append(p.files, f)
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		p.imports[imported] = file
	}
}

// root is the repository's root as seen from this folder.
const root = "../.."

// skipped are folders whose content is not the repository's own: version
// control, other modules, and what builds leave behind.
var skipped = []string{".git", ".cache", "bin", "bench", "tools", "deploy/certs", "deploy/image"}

// walk calls visit for every file of the repository, by its path from the root.
func walk(t *testing.T, visit func(file string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir() && (slices.Contains(skipped, rel) || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.Type().IsRegular() && rel != ".git": // That is a file in a linked work tree.
			visit(rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// onlyTests says whether the folder has Go files, which are then all tests.
func onlyTests(t *testing.T, folder string) bool {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), "_test.go") })
}
