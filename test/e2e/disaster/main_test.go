// Package disaster loses clusters of real idnode processes, in whole or in part,
// and brings back what they knew: from backups, and from what survivors have.
// No id may come twice, before and after together.
package disaster

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}

// result is what a command line did.
type result struct {
	out, errors string
	code        int
}

// idnode runs one command line of the program.
func idnode(t testing.TB, args ...string) result {
	t.Helper()
	var out, failed bytes.Buffer
	cmd := harness.Command(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &failed
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out: out.String(), errors: failed.String(), code: cmd.ProcessState.ExitCode()}
}

// must runs a command line that must succeed.
func must(t testing.TB, args ...string) string {
	t.Helper()
	r := idnode(t, args...)
	if r.code != 0 {
		t.Fatalf("idnode %v: exit code %d: %s", args, r.code, r.errors)
	}
	return r.out
}

// refused runs a command line that must fail with a code.
func refused(t testing.TB, code int, args ...string) string {
	t.Helper()
	r := idnode(t, args...)
	if r.code != code {
		t.Fatalf("idnode %v: exit code %d, want %d: %s%s", args, r.code, code, r.out, r.errors)
	}
	return r.errors
}

// endpoints are the flags that name nodes, in this order.
func endpoints(nodes ...*harness.Node) []string {
	var flags []string
	for _, n := range nodes {
		flags = append(flags, "--endpoint", n.GRPC)
	}
	return flags
}

// with appends flags.
func with(args []string, more ...string) []string { return append(args, more...) }
