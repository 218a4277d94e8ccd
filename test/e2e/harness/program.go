package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// programs are the programs that were built for this test binary, by their build
// tags.
var programs struct {
	sync.Mutex
	dir   string
	built map[string]string
}

// Binary is the path of the idnode program under test. IDNODE_E2E_BINARY names
// a program to use instead of building one.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("IDNODE_E2E_BINARY"); path != "" {
		return path
	}
	return program(t, "")
}

// FailpointBinary is the path of a program that can be killed at chosen places,
// and given a wrong clock: package internal/failpoint says how.
func FailpointBinary(t testing.TB) string {
	t.Helper()
	return program(t, "failpoint")
}

// MutantBinary is the path of a program that has the bug that IDNODE_MUTANT names:
// package internal/mutant says which there are.
func MutantBinary(t testing.TB) string {
	t.Helper()
	return program(t, "mutants")
}

// RemoveBinary deletes the programs that were built; for TestMain.
func RemoveBinary() {
	programs.Lock()
	defer programs.Unlock()
	os.RemoveAll(programs.dir)
}

// program compiles the program with the build tags, once per test binary.
func program(t testing.TB, tags string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if path := programs.built[tags]; path != "" {
		return path
	}
	path, err := build(tags)
	if err != nil {
		t.Fatal(err)
	}
	programs.built[tags] = path
	return path
}

func build(tags string) (path string, err error) {
	if programs.dir == "" {
		if programs.dir, err = os.MkdirTemp("", "idnode-e2e-"); err != nil {
			return "", err
		}
		programs.built = make(map[string]string)
	}
	// The tests may be in a module of their own, which does not have all that the
	// program needs.
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/idnode/idnode").Output()
	if err != nil {
		return "", fmt.Errorf("find idnode: %w", err)
	}
	path = filepath.Join(programs.dir, "idnode"+tags)
	cmd := exec.Command("go", "build", "-tags", "grpcnotrace,"+tags, "-o", path, "./cmd/idnode")
	cmd.Dir, cmd.Env = strings.TrimSpace(string(root)), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build idnode: %w\n%s", err, out)
	}
	return path, nil
}
