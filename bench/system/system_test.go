package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/idnode/idnode/bench/load"
	"github.com/idnode/idnode/internal/bench"
)

// TestMain makes the test program a member of a cluster when it is asked to,
// as the program does.
func TestMain(m *testing.M) {
	if asked, err := Member(context.Background(), os.Args[1:]); asked {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// buildIdnode builds the program from the checkout around this module.
func buildIdnode(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "idnode")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/idnode")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s", err, out)
	}
	return program
}

// openDir is a folder for a test that every user gets to: PostgreSQL may run as
// another one, and what t.TempDir makes lies in a folder for one user.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bench-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSystems starts each system, puts a moment's load on it, and looks that
// nothing is left. Those that are not installed are skipped.
func TestSystems(t *testing.T) {
	program := buildIdnode(t)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			env := Env{Dir: openDir(t), Idnode: program}
			s := New(name, env)
			if err := s.Start(t.Context()); errors.Is(err, ErrMissing) {
				t.Skip(err)
			} else if err != nil {
				t.Error(errors.Join(err, s.Stop()))
				return
			}
			plan := load.Plan{WarmUp: 10 * time.Millisecond, Duration: 100 * time.Millisecond}
			for _, p := range s.Points(1) {
				r, err := s.Measure(t.Context(), plan, p)
				if err != nil || r.CallsPerS <= 0 || len(r.ErrorReasons) != 0 || r.Op != p.Op {
					t.Errorf("%+v: %+v %v", p, r, err)
				}
			}
			for _, p := range s.Points(8) {
				if p.Op == bench.Echo {
					continue
				}
				r, err := s.Measure(t.Context(), plan, p)
				if err != nil || r.IDsPerS < r.CallsPerS || r.Callers != 8 || len(r.ErrorReasons) != 0 {
					t.Errorf("%+v: %+v %v", p, r, err)
				}
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(env.Dir); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
			if s.Version() == "" {
				t.Error("has no version")
			}
		})
	}
}

// TestSyncsAreDelayed: an identity waits for a sync at least.
func TestSyncsAreDelayed(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip(err)
	}
	const delay = 20 * time.Millisecond
	s := New("idnode", Env{Dir: openDir(t), Idnode: buildIdnode(t), SyncDelay: delay})
	err := s.Start(t.Context())
	if err == nil {
		var r bench.Report
		r, err = s.Measure(t.Context(), load.Plan{WarmUp: 10 * time.Millisecond, Duration: 200 * time.Millisecond}, s.Points(1)[0])
		if p50 := time.Duration(r.P50us) * time.Microsecond; err == nil && p50 < delay {
			t.Errorf("an identity took %v", p50)
		}
	}
	if err := errors.Join(err, s.Stop()); err != nil {
		t.Error(err)
	}
}

func TestFreeAddressesDiffer(t *testing.T) {
	all, err := freeAddresses(10)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, addr := range all {
		if seen[addr] {
			t.Errorf("%s twice", addr)
		}
		seen[addr] = true
	}
}

func TestAStoppedSystemNeedNotHaveStarted(t *testing.T) {
	for _, name := range Names() {
		if err := New(name, Env{Dir: t.TempDir()}).Stop(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
