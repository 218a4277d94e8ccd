package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/idnode/idnode/test/mutants/patches"
)

// programs are the test programs, of which each is built when it is needed.
type programs struct {
	dir   string
	seeds int
}

// killer is a test that may find a bug.
type killer struct {
	// folder is the package's.
	folder string
	args   []string
	limit  time.Duration
}

const (
	module      = "github.com/idnode/idnode/"
	simulation  = "test/simulation"
	controlRuns = 300
	// limit bounds the search of one test for one bug.
	limit = 15 * time.Minute
)

// killers are the tests that look for a bug, in the order in which they do. The
// simulation is the one that shall find all; the others are asked when it does not.
func (p *programs) killers(b bug) []killer {
	return append([]killer{{simulation, []string{"-test.run", "TestSeeds$", "-first", "-seeds", strconv.Itoa(p.seeds)}, limit}}, b.others...)
}

// verdict is what became of a bug.
type verdict struct {
	name string
	// by is the test that found it, empty if none did; saw what that said.
	by, saw string
	took    time.Duration
}

func (v verdict) String() string {
	if v.by == "" {
		return "NOT FOUND"
	}
	return v.by + ": " + v.saw
}

// control runs the simulation without a bug.
func (p *programs) control(ctx context.Context) error {
	k := killer{simulation, []string{"-test.run", "TestSeeds$", "-seeds", strconv.Itoa(min(p.seeds, controlRuns))}, limit}
	program, err := p.build(ctx, k.folder)
	if err != nil {
		return err
	}
	failed, output, err := k.run(ctx, program)
	if err == nil && failed {
		err = fmt.Errorf("the simulation fails without a bug:\n%s", output)
	}
	return err
}

// find has one test after the other look for a bug.
func (p *programs) find(ctx context.Context, b bug) verdict {
	v := verdict{name: b.name}
	if err := p.search(ctx, b, &v); err != nil {
		v.saw = err.Error()
	}
	return v
}

// search ends with the first test that finds the bug.
func (p *programs) search(ctx context.Context, b bug, v *verdict) error {
	patch, err := patches.Read(b.name)
	if err != nil {
		return err
	}
	overlay, err := patches.Overlay(filepath.Join(p.dir, b.name), patch)
	if err != nil {
		return err
	}
	for _, k := range p.killers(b) {
		program, err := p.build(ctx, k.folder, "-overlay", overlay)
		if err != nil {
			return err
		}
		begin := time.Now()
		failed, output, err := k.run(ctx, program)
		v.took += time.Since(begin)
		if err != nil {
			return err
		}
		if failed {
			v.by, v.saw = explain(k.folder, output)
			return nil
		}
	}
	return nil
}

// build builds a package's test program, in place of the last one, and returns its
// path.
func (p *programs) build(ctx context.Context, folder string, flags ...string) (string, error) {
	path := filepath.Join(p.dir, "tests")
	args := slices.Concat([]string{"test", "-c", "-o", path}, flags, []string{module + folder})
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the tests of %s: %w\n%s", folder, err, out)
	}
	return path, nil
}

// run runs a test. The error says that it could not be run.
func (k killer) run(ctx context.Context, program string) (failed bool, output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, k.args...)
	cmd.Dir = k.folder
	cmd.Env = append(os.Environ(), "TEST_TIER=all")
	out, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); ended && ctx.Err() == nil {
		return true, string(out), nil
	}
	return false, string(out), err
}
