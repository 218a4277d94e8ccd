package disaster

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestRecoveriesThatAreNotRecorded: without the first record nothing is done. If the
// audit log fails after it, or the result cannot be printed, the directory is recovered: the
// exit code is that of a failure, the error says so, and the node can be started.
func TestRecoveriesThatAreNotRecorded(t *testing.T) {
	tier.Long(t)
	if !harness.CanTrace() {
		t.Skip("strace is not installed: no way to break a disk")
	}
	a := loseCluster(t)
	record := filepath.Join(a.DataDir, "node.json")
	before := clusterID(t, record)
	for _, tt := range []struct {
		name, inject, output string
		recovered            bool
	}{
		{"the intention is not on disk", "fsync:error=EIO", "", false},
		{"the file is not closed", "close:error=EIO", "", true},
		{"the result is not printed", "", "/dev/full", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a.again(t)
			audit := filepath.Join(t.TempDir(), "audit.log")
			r := recoverWith(t, tt.inject, tt.output, "recover", "--data-dir", a.DataDir, "--members", "A", "--skip-ahead", "1000",
				"--yes", "--audit", audit)
			if r.code != 1 || strings.Contains(r.errors, "the directory is recovered") != tt.recovered || tt.output == "" &&
				!strings.Contains(r.errors, "input/output error") {
				t.Errorf("exit code %d: %s", r.code, r.errors)
			}
			if printed := strings.Contains(r.out, "recovered"); printed != (tt.recovered && tt.output == "") {
				t.Errorf("it printed %q", r.out)
			}
			if after := clusterID(t, record); (after != before) != tt.recovered {
				t.Fatalf("the cluster %s after %s", after, before)
			}
			if !tt.recovered {
				must(t, "recover", "--data-dir", a.DataDir, "--members", "A", "--skip-ahead", "1000", "--yes", "--audit", audit)
			}
			must(t, "audit", "verify", audit)
			a.goesOn(t)
		})
	}
}

// recoverWith runs a command line, whose last argument is the audit log. A system call on
// that does what inject says, and what it prints goes into the file output; both may be empty.
func recoverWith(t *testing.T, inject, output string, args ...string) result {
	t.Helper()
	cmd := harness.Command(t, args...)
	if inject != "" {
		strace, err := exec.LookPath("strace")
		if err != nil {
			t.Fatal(err)
		}
		call, _, _ := strings.Cut(inject, ":")
		cmd.Args = slices.Concat([]string{
			strace, "-f", "-o", "/dev/null", "-P", args[len(args)-1], "-e", "trace=" + call, "-e",
			"inject=" + inject, cmd.Path,
		}, args)
		cmd.Path = strace
	}
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if output != "" {
		file, err := os.OpenFile(output, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		cmd.Stdout = file
	}
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out: out.String(), errors: failed.String(), code: cmd.ProcessState.ExitCode()}
}
