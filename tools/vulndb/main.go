// Command vulndb prints what is known of vulnerabilities in the modules of this repository, and in Go's own: of each
// its id, the versions, packages and symbols, and no text. The first line has the day of the making and of the newest
// entry, each other one an entry of the form that govulncheck reads (https://go.dev/security/vuln/database).
//
//	vulndb ROOT SOURCE > vulndb/known.jsonl
//
// They are from the Go vulnerability database (CC BY 4.0). ROOT holds the repository. SOURCE is a directory or a zip with an entry a file, or the address of a zip.
package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: vulndb ROOT SOURCE")
		os.Exit(2)
	}
	source, err := open(os.Args[2])
	if err == nil {
		err = write(os.Stdout, os.DirFS(os.Args[1]), source, time.Now())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulndb:", err)
		os.Exit(1)
	}
}

// entry has the facts of a file in the database, as OSV names them.
type entry struct {
	ID        string     `json:"id"`
	Modified  time.Time  `json:"modified"`
	Withdrawn *time.Time `json:"withdrawn,omitempty"`
	Summary   string     `json:"summary"`
	Affected  []affected `json:"affected"`
	Database  struct {
		URL string `json:"url"`
	} `json:"database_specific"`
}

type affected struct {
	Package struct {
		Name      string `json:"name"`
		Ecosystem string `json:"ecosystem"`
	} `json:"package"`
	Ranges []struct {
		Type   string `json:"type"`
		Events []struct {
			Introduced string `json:"introduced,omitempty"`
			Fixed      string `json:"fixed,omitempty"`
		} `json:"events"`
	} `json:"ranges,omitempty"`
	Specific struct {
		Imports []struct {
			Path    string   `json:"path"`
			GOOS    []string `json:"goos,omitempty"`
			GOARCH  []string `json:"goarch,omitempty"`
			Symbols []string `json:"symbols,omitempty"`
		} `json:"imports,omitempty"`
	} `json:"ecosystem_specific"`
}

func open(source string) (fs.FS, error) {
	var data []byte
	info, err := os.Stat(source)
	switch {
	case strings.HasPrefix(source, "https://"):
		data, err = download(source)
	case err == nil && info.IsDir():
		return os.DirFS(source), nil
	case err == nil:
		data, err = os.ReadFile(source)
	}
	if err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(data), int64(len(data)))
}

func download(address string) ([]byte, error) {
	answer, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// write prints the entries of source that concern the modules below root.
func write(w io.Writer, root, source fs.FS, now time.Time) error {
	ours, err := modules(root)
	if err != nil {
		return err
	}
	var lines []string
	var newest time.Time
	err = fs.WalkDir(source, ".", func(name string, file fs.DirEntry, err error) error {
		if ok, _ := path.Match("GO-*.json", file.Name()); err != nil || !ok {
			return err
		}
		e, err := read(source, name, file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if e.Modified.After(newest) {
			newest = e.Modified
		}
		e.Affected = slices.DeleteFunc(e.Affected, func(a affected) bool { return !ours[a.Package.Name] })
		if e.Withdrawn == nil && len(e.Affected) > 0 {
			line, err := json.Marshal(e)
			lines = append(lines, string(line))
			return err
		}
		return nil
	})
	slices.Sort(lines)
	if err == nil && len(lines) == 0 {
		err = fmt.Errorf("the source has no entry of %d modules", len(ours))
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "{\"made\":\"%s\",\"newest\":\"%s\"}\n%s\n",
			now.UTC().Format(time.DateOnly), newest.UTC().Format(time.DateOnly), strings.Join(lines, "\n"))
	}
	return err
}

// read reads an entry. In the repository of the database those have no time: that of the file counts.
func read(source fs.FS, name string, file fs.DirEntry) (e entry, err error) {
	data, err := fs.ReadFile(source, name)
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err == nil && e.Modified.IsZero() {
		var info fs.FileInfo
		if info, err = file.Info(); err == nil {
			e.Modified = info.ModTime().UTC()
		}
	}
	e.Summary, e.Database.URL = e.ID, "https://pkg.go.dev/vuln/"+e.ID
	return e, err
}

// modules returns those with a sum in a go.sum, which are those of the builds and some more, and Go's own.
func modules(root fs.FS) (map[string]bool, error) {
	ours := map[string]bool{"stdlib": true, "toolchain": true}
	err := fs.WalkDir(root, ".", func(name string, file fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if file.IsDir() && name != "." && strings.HasPrefix(file.Name(), ".") {
			return fs.SkipDir
		}
		if file.Name() != "go.sum" {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		for line := range strings.Lines(string(text)) {
			module, _, _ := strings.Cut(line, " ")
			ours[module] = true
		}
		return err
	})
	return ours, err
}
