package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// programs are the test programs, built when they are needed first, and kept.
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
	simulation  = "test/simulation"
	controlRuns = 300
	// limit bounds the search of one test for one bug.
	limit = 15 * time.Minute
)

// killers are the tests that look for a bug, in the order in which they do. The
// simulation is the one that shall find all; the others are asked when it does not.
func (p *programs) killers(m mutant) []killer {
	all := []killer{{simulation, []string{"-test.run", "TestSeeds$", "-first", "-seeds", strconv.Itoa(p.seeds)}, limit}}
	return append(all, others[m.constant]...)
}

// others are the tests of bugs that the simulation cannot find.
var others = map[string][]killer{
	// The cluster heals itself with the next snapshot, so the simulation seldom sees it.
	"AnchorForgotten": {{"cluster", []string{"-test.run", "TestEntriesAfterAnInstalledSnapshot$"}, time.Minute}},
	// A leader must be slow at the right moment: mostly some hundred seeds, at times more.
	"CommitBeyondEntries": {{"cluster/transport", []string{"-test.run", "TestCommitIndexIsBoundedByTheEntriesSent$"}, time.Minute}},
	// These need several rare things in a row, more than some thousand seeds have.
	"CeilingIgnored":     {{"etag", []string{"-test.run", "TestNoEtagComesTwiceFromOldCopies$"}, time.Minute}},
	"CleanStopKept":      {{"fsm", []string{"-test.run", "TestTranscripts$"}, time.Minute}},
	"LogDraftNotSynced":  {{"cluster/store/wal", []string{"-test.run", "TestCrashBetweenAnyTwoCalls$"}, time.Minute}},
	"EtagBeforeReserved": {{"etag", []string{"-test.run", "TestAStalledDisk$"}, time.Minute}},
	"OutageWaitedOut":    {{"cluster/commit", []string{"-test.run", "TestWithoutALeaderEverybodyIsAnsweredAfterLeaderWait$"}, time.Minute}},
}

// verdict is what became of a bug.
type verdict struct {
	mutant
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
	failed, output, err := p.run(ctx, k, "")
	if err == nil && failed {
		err = fmt.Errorf("the simulation fails without a bug:\n%s", output)
	}
	return err
}

// find has one test after the other look for a bug.
func (p *programs) find(ctx context.Context, m mutant) verdict {
	v := verdict{mutant: m}
	for _, k := range p.killers(m) {
		begin := time.Now()
		failed, output, err := p.run(ctx, k, m.name)
		v.took += time.Since(begin)
		if err != nil {
			v.saw = err.Error()
			return v
		}
		if failed {
			v.by, v.saw = explain(k.folder, output)
			return v
		}
	}
	return v
}

// run runs a test with a bug. The error says that it could not be run.
func (p *programs) run(ctx context.Context, k killer, bug string) (failed bool, output string, err error) {
	program, err := p.program(ctx, k.folder)
	if err != nil {
		return false, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, k.args...)
	cmd.Dir = k.folder
	cmd.Env = append(os.Environ(), "IDNODE_MUTANT="+bug)
	out, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); ended && ctx.Err() == nil {
		return true, string(out), nil
	}
	return false, string(out), err
}

// program returns the path of a package's test program.
func (p *programs) program(ctx context.Context, folder string) (string, error) {
	path := filepath.Join(p.dir, strings.ReplaceAll(folder, "/", "-"))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "mutants", "-o", path, "./"+folder).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the tests of %s: %w\n%s", folder, err, out)
	}
	return path, nil
}
