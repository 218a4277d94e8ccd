// Package patches has the planted bugs. Each is a patch of the product: NAME.patch
// begins with a line that says what the program with it does wrong.
//
// No bug is in the product's files. A patch is applied to copies of the files that
// it changes, which the go command is told to read in place of them.
package patches

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed *.patch
var texts embed.FS

const ending = ".patch"

// Patch is one planted bug.
type Patch struct {
	// Name is the bug's.
	Name string
	// What says what the program does wrong.
	What string
	// Files are what it changes, by their paths from the repository's root.
	Files []string
	text  string
}

// Names are the names of all patches.
func Names() []string {
	files, err := texts.ReadDir(".")
	if err != nil {
		panic(err) // They are in the program.
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ending))
	}
	return names
}

// Read returns the patch of a bug.
func Read(name string) (Patch, error) {
	text, err := texts.ReadFile(name + ending)
	if err != nil {
		return Patch{}, fmt.Errorf("there is no planted bug %s: %w", name, err)
	}
	p := Patch{Name: name, text: string(text)}
	header, _, _ := strings.Cut(p.text, "--- ")
	what, ok := strings.CutPrefix(strings.Join(strings.Fields(header), " "), name+" ")
	if !ok {
		return Patch{}, fmt.Errorf("%s%s does not begin with the bug's name", name, ending)
	}
	p.What = strings.TrimSuffix(what, ".")
	for line := range strings.Lines(p.text) {
		if file, ok := strings.CutPrefix(line, "--- a/"); ok {
			p.Files = append(p.Files, strings.TrimSpace(file))
		}
	}
	return p, nil
}

// Overlay plants bugs in a build: it writes their files below dir, and returns the
// path of what go build and go test take as -overlay. No two may change one file.
func Overlay(dir string, bugs ...Patch) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, p := range bugs {
		if err := p.plant(root, dir); err != nil {
			return "", err
		}
		for _, f := range p.Files {
			replace[filepath.Join(root, f)] = filepath.Join(dir, f)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// Root is the path of the repository's root.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// plant writes copies of the files that the patch changes, with the bug, below dir.
func (p Patch) plant(root, dir string) error {
	for _, f := range p.Files {
		text, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			return fmt.Errorf("%s%s: %w", p.Name, ending, err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f), text, 0o600); err != nil {
			return err
		}
	}
	if out, err := p.apply(dir); err != nil {
		return fmt.Errorf("%s%s no longer fits: %w\n%s", p.Name, ending, err, out)
	}
	return nil
}

// apply applies the patch to the files below dir.
func (p Patch) apply(dir string, flags ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"apply", "--whitespace=nowarn"}, flags...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(dir, "none")) // Whatever repository dir lies in.
	cmd.Stdin = strings.NewReader(p.text)
	return cmd.CombinedOutput()
}
