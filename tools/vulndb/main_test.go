package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/vuln/scan"
)

// planted is the vulnerability of a function, as a report has it.
const planted = `{"id":"GO-2000-0001","modified":"2000-01-02T00:00:00Z","summary":"Text","details":"Text","affected":[
	{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
	"ecosystem_specific":{"imports":[{"path":"text/tabwriter","symbols":["NewWriter"]}]}},
	{"package":{"name":"other.example/x","ecosystem":"Go"}}]}`

// TestOnlyFactsOfOurModules are kept: no text, and no entry of a module that is not built here.
func TestOnlyFactsOfOurModules(t *testing.T) {
	root := fstest.MapFS{"go.sum": {Data: []byte("ours.example/y v1.0.0 h1:x=\n")}}
	var out bytes.Buffer
	err := write(&out, root, fstest.MapFS{
		"ID/GO-2000-0001.json": {Data: []byte(planted)},
		"ID/GO-2000-0002.json": {Data: []byte(strings.ReplaceAll(strings.ReplaceAll(planted, "0001", "0002"), "stdlib", "ours.example/y"))},
		"ID/GO-2000-0003.json": {Data: []byte(strings.ReplaceAll(strings.ReplaceAll(planted, "0001", "0003"), "stdlib", "third.example/z"))},
		"index/modules.json":   {Data: []byte("[]")},
	}, time.Date(2000, 1, 3, 0, 0, 0, 0, time.UTC))
	lines := strings.Split(out.String(), "\n")
	if err != nil || len(lines) != 4 || lines[0] != `{"made":"2000-01-03","newest":"2000-01-02"}` ||
		!strings.Contains(lines[1], `"id":"GO-2000-0001"`) || !strings.Contains(lines[2], `"name":"ours.example/y"`) {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, not := range []string{"Text", "other.example"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("%s is kept:\n%s", not, out.String())
		}
	}
}

// TestPlantedCallIsFound by govulncheck with nothing but the lines that are kept.
func TestPlantedCallIsFound(t *testing.T) {
	db, module := t.TempDir(), t.TempDir()
	var out bytes.Buffer
	if err := write(&out, fstest.MapFS{}, fstest.MapFS{"GO-2000-0001.json": {Data: []byte(planted)}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(db, "GO-2000-0001.json"): strings.Split(out.String(), "\n")[1],
		filepath.Join(module, "go.mod"):        "module planted.example\n\ngo 1.26.0\n",
		filepath.Join(module, "main.go"): "package main\n\nimport (\n\t\"os\"\n\t\"text/tabwriter\"\n)\n\n" +
			"func main() { tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0).Flush() }\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := scan.Command(t.Context(), "-db", "file://"+db, "-C", module, "./...")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
	}
	if err == nil || !strings.Contains(said.String(), "GO-2000-0001") || !strings.Contains(said.String(), "tabwriter.NewWriter") {
		t.Errorf("%v: %s", err, said.String())
	}
}
