package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestInstall takes program and clients as Go users do, in an empty folder, from a proxy that has this commit as
// v1.0.0: `go install` refuses a module that replaces others.
func TestInstall(t *testing.T) {
	tier.Long(t)
	env, dir, bin := harness.Published(t, "v1.0.0"), t.TempDir(), t.TempDir()
	do := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(env, "GOBIN="+bin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}

	do("go", "install", "github.com/idnode/idnode/cmd/idnode@v1.0.0")
	if version := do(filepath.Join(bin, "idnode"), "version"); !strings.HasPrefix(version, "idnode v1.0.0 ") {
		t.Errorf("the program's version is %q", version)
	}
	// It has the modules, in the versions, with which the repository's own workspace builds it.
	if installed, built := modulesOf(do("go", "version", "-m", filepath.Join(bin, "idnode"))),
		modulesOf(do("go", "version", "-m", harness.Binary(t))); installed != built {
		t.Errorf("installed:\n%s\nbuilt here:\n%s", installed, built)
	}

	do("go", "mod", "init", "example.com/app")
	do("go", "get", "github.com/idnode/idnode/client@v1.0.0", "github.com/idnode/idnode/client/gormid@v1.0.0")
	const program = "package main\n\nimport (\n\t\"github.com/idnode/idnode/client\"\n\t\"github.com/idnode/idnode/client/gormid\"\n)\n\n" +
		"func main() { _, _ = client.New, gormid.Plugin{} }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	do("go", "run", ".")

	// A workspace takes the client from a clone.
	clone, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	do("go", "work", "init", ".", filepath.Join(clone, "client"), filepath.Join(clone, "client", "gormid"))
	do("go", "mod", "edit", "-droprequire", "github.com/idnode/idnode/client", "-droprequire", "github.com/idnode/idnode/client/gormid")
	do("go", "run", ".")
}

// modulesOf are the modules that a program was built from, but for those of this repository.
func modulesOf(description string) string {
	var modules []string
	for line := range strings.Lines(description) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "dep" && !strings.HasPrefix(words[1], "github.com/idnode/") {
			modules = append(modules, words[1]+" "+words[2])
		}
	}
	return strings.Join(modules, "\n")
}
