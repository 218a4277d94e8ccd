// Command mutants runs the tests against planted bugs, and says which test found
// each of them and after how long.
//
//	mutants [-quick] [-only name,name] [-seeds n]
//
// The bugs are the patches of package patches; each has its own build of the test
// programs that look for it. First the tests run without a bug, and must find nothing;
// -quick leaves that to .ci/run, which has simulated more clusters by then.
// A bug that no test finds fails the command.
//
// It is run at the repository's root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// options are the command's flags.
type options struct {
	quick bool
	only  string
	seeds int
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "only a few bugs")
	flag.StringVar(&o.only, "only", "", "only these bugs, with commas between them")
	flag.IntVar(&o.seeds, "seeds", 3000, "how many seeds of the simulation may look for each bug")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	wanted := slices.DeleteFunc(slices.Clone(bugs), func(b bug) bool { return !o.wants(b) })
	dir, err := os.MkdirTemp("", "idnode-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tests := &programs{dir: dir, seeds: o.seeds}
	if !o.quick {
		if err := tests.control(ctx); err != nil {
			return err
		}
	}
	verdicts := tests.hunt(ctx, wanted)
	fmt.Println(score(verdicts))
	return survivors(verdicts)
}

// wants says whether a bug is to be tried.
func (o options) wants(b bug) bool {
	if o.only != "" {
		return slices.Contains(strings.Split(o.only, ","), b.name)
	}
	return b.quick || !o.quick
}

// hunt has the tests look for one bug after the other.
func (p *programs) hunt(ctx context.Context, wanted []bug) (verdicts []verdict) {
	for _, b := range wanted {
		v := p.find(ctx, b)
		if ctx.Err() != nil {
			return verdicts
		}
		fmt.Printf("%-30s %8s  %s\n", b.name, v.took.Round(10*time.Millisecond), v)
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// score counts the bugs that were found.
func score(verdicts []verdict) string {
	found, bySimulation, longest := 0, 0, time.Duration(0)
	for _, v := range verdicts {
		if v.by == "" {
			continue
		}
		found++
		longest = max(longest, v.took)
		if strings.HasPrefix(v.by, "simulation") {
			bySimulation++
		}
	}
	return fmt.Sprintf("%d of %d planted bugs were found, %d of them by the simulation; the slowest took %s.",
		found, len(verdicts), bySimulation, longest.Round(100*time.Millisecond))
}

// survivors is an error that names the bugs that nobody found.
func survivors(verdicts []verdict) error {
	var alive []string
	for _, v := range verdicts {
		if v.by == "" {
			alive = append(alive, v.name)
		}
	}
	if len(alive) > 0 {
		return fmt.Errorf("no test found %s", strings.Join(alive, ", "))
	}
	return nil
}
