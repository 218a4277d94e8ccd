package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/idnode/idnode/test/mutants/patches"
)

// programs are the programs that were built for this test binary, by what is
// particular to each.
var programs struct {
	sync.Mutex
	dir   string
	built map[string]string
}

// Binary is the path of the idnode program under test. It has failpoints: package
// internal/failpoint says what can be done to it. IDNODE_E2E_BINARY names another such
// program to use instead of building one.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("IDNODE_E2E_BINARY"); path != "" {
		return path
	}
	return program(t, "plain")
}

// MutantBinary is the path of a program that has a planted bug: package
// test/mutants/patches has them.
func MutantBinary(t testing.TB, bug string) string {
	t.Helper()
	patch, err := patches.Read(bug)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := patches.Overlay(t.TempDir(), patch)
	if err != nil {
		t.Fatal(err)
	}
	return program(t, bug, "-overlay", overlay)
}

// releasedCommit has the commit of the newest release, and nextPatch what a release after this source may add: an
// operation, and the log format that it needs. Both are seen from the root of the module.
const releasedCommit, nextPatch = "test/compat/released", "test/e2e/testdata/next.patch"

// Released is the path of the program of the newest release, with failpoints, which is built from its source.
func Released(t testing.TB) string {
	t.Helper()
	source := ReleasedSource(t)
	if source == repository(t) {
		return Binary(t)
	}
	return program(t, "released", "-C", source, "-trimpath")
}

// ReleasedSource is the folder of the source of the newest release, from the history of this clone. In a clone that
// lacks that commit, as a shallow one, its own source stands for it, and the test says so.
func ReleasedSource(t testing.TB) string {
	t.Helper()
	root := repository(t)
	text, err := os.ReadFile(filepath.Join(root, releasedCommit))
	if err != nil {
		t.Fatal(err)
	}
	source, err := copied(t, root, `git archive --format=tar "$1" | tar -x -C "$2" && test -e "$2/go.mod"`, strings.TrimSpace(string(text)))
	if err != nil {
		t.Logf("this clone lacks the release's commit, so its own source stands for it: %v", err)
		return root
	}
	return source
}

// Next is the path of the program of a release after this source, with failpoints, and the folder of its source.
func Next(t testing.TB) (path, source string) {
	t.Helper()
	root := repository(t)
	source, err := copied(t, root, `tar -c --exclude=./.git --exclude=./.cache --exclude=./bin --exclude=./dist . | tar -x -C "$2" &&
		cd "$2" && GIT_DIR=none git apply "$1"`, filepath.Join(root, nextPatch))
	if err != nil {
		t.Fatalf("%s: %v", nextPatch, err)
	}
	return program(t, "next", "-C", source, "-trimpath"), source
}

// copied is a new folder that a script fills from the repository: $1 is its argument, $2 the folder.
func copied(t testing.TB, root, script, argument string) (folder string, err error) {
	t.Helper()
	folder = t.TempDir()
	cmd := exec.Command("sh", "-c", script, "sh", argument, folder)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return folder, nil
}

// RemoveBinary deletes the programs that were built; for TestMain.
func RemoveBinary() {
	programs.Lock()
	defer programs.Unlock()
	os.RemoveAll(programs.dir)
}

// program compiles the program with the flags, once per test binary.
func program(t testing.TB, name string, flags ...string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if path := programs.built[name]; path != "" {
		return path
	}
	path, err := build(repository(t), name, flags)
	if err != nil {
		t.Fatal(err)
	}
	programs.built[name] = path
	return path
}

func build(root, name string, flags []string) (path string, err error) {
	if programs.dir == "" {
		if programs.dir, err = os.MkdirTemp("", "idnode-e2e-"); err != nil {
			return "", err
		}
		programs.built = make(map[string]string)
	}
	path = filepath.Join(programs.dir, "idnode-"+name)
	return path, shared(root, path, flags)
}

// shared builds the program where the tests of all packages build it, one at a time, and
// copies it. The go command links a program again only if it has changed.
func shared(root, path string, flags []string) error {
	kept := filepath.Join(root, ".cache", "builds", filepath.Base(path))
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return err
	}
	turn, err := os.OpenFile(kept+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer turn.Close()
	if err := syscall.Flock(int(turn.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	cmd := exec.Command("go",
		slices.Concat([]string{"build"}, flags, []string{"-tags", "grpcnotrace,failpoint", "-ldflags", "-s -w", "-o", kept, "./cmd/idnode"})...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build idnode: %w\n%s", err, out)
	}
	// A copy: another run of the tests may build a changed program meanwhile.
	program, err := os.ReadFile(kept)
	if err != nil {
		return err
	}
	// A process that is forked while the file is open for writing keeps it from being run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, program, 0o755)
}
