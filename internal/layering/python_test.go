package layering

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var pythonImports = regexp.MustCompile(`(?m)^ *from \.(\w*) import (.*)`)

// TestPythonHasNoCircle: each module of the Python client imports only modules that do not import it, also for types.
func TestPythonHasNoCircle(t *testing.T) {
	imports := map[string][]string{}
	walk(t, func(file string) {
		if path.Dir(file) != "clients/python/idnode" || path.Ext(file) != ".py" {
			return
		}
		text, err := os.ReadFile(path.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		module := strings.TrimSuffix(path.Base(file), ".py")
		for _, found := range pythonImports.FindAllStringSubmatch(string(text), -1) {
			if found[1] != "" {
				imports[module] = append(imports[module], found[1])
				continue
			}
			for _, name := range strings.Split(found[2], ", ") {
				imports[module] = append(imports[module], strings.Fields(name)[0])
			}
		}
	})
	if len(imports) < 10 {
		t.Fatalf("there are only %d modules", len(imports))
	}
	done := map[string]bool{}
	var visit func(module string, way []string)
	visit = func(module string, way []string) {
		for i, before := range way {
			if before == module {
				t.Errorf("modules import each other: %s", strings.Join(append(way[i:], module), " → "))
				return
			}
		}
		if done[module] {
			return
		}
		for _, next := range imports[module] {
			visit(next, append(way[:len(way):len(way)], module))
		}
		done[module] = true
	}
	for module := range imports {
		visit(module, nil)
	}
}
