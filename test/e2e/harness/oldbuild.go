package harness

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// OldProgram is the path of the program as it was at a commit of this
// repository. It is built once and kept in .cache, by commit. A test that is run
// where the commit is not, as from an archive or in a shallow clone, is skipped.
func OldProgram(t testing.TB, commit string) string {
	t.Helper()
	root := repository(t)
	kept := filepath.Join(root, ".cache", "builds", "idnode-"+commit)
	if _, err := os.Stat(kept); err == nil {
		return kept
	}
	if err := gitCommand(root, "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		t.Skipf("commit %s is not in this checkout, which is shallow or no clone at all: upgrades from it are not tested", commit)
	}
	source := t.TempDir()
	unpack(t, gitCommand(root, "archive", commit), source)
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		t.Fatal(err)
	}
	// Tests of other packages may do the same at the same time.
	fresh, err := os.MkdirTemp(filepath.Dir(kept), "fresh-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(fresh, "idnode"), "./cmd/idnode")
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building commit %s: %v\n%s", commit, err, out)
	}
	if err := os.Rename(filepath.Join(fresh, "idnode"), kept); err != nil {
		t.Fatal(err)
	}
	return kept
}

// gitCommand runs git in a checkout that another user may own, as in CI.
func gitCommand(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir = dir
	return cmd
}

// unpack puts what archive prints into a folder.
func unpack(t testing.TB, archive *exec.Cmd, dir string) {
	t.Helper()
	packed, err := archive.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%s: %v: %s", strings.Join(archive.Args, " "), err, exit.Stderr)
		}
		t.Fatal(err)
	}
	tar := exec.Command("tar", "-x", "-C", dir)
	tar.Stdin = bytes.NewReader(packed)
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
}
