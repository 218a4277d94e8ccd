// Bench measures idnode beside what people would use instead, all on this
// machine, and writes the tables and plots of bench/README.md.
//
//	go run .                measure and report
//	go run . report FILE    report what was measured before
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/idnode/idnode/bench/report"
	"github.com/idnode/idnode/bench/result"
	"github.com/idnode/idnode/bench/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if asked, err := system.Member(ctx, args); asked {
		return err
	}
	if len(args) > 0 && args[0] == "report" {
		return reportFile(args[1:], stdout, stderr)
	}
	return measureAndReport(ctx, args, stdout, stderr)
}

// defaultOutput is the page with the tables, seen from bench/.
const defaultOutput = "README.md"

// defaultResults is the file behind those tables.
var defaultResults = filepath.Join("results", "published.jsonl")

// reportFile makes tables and plots of an earlier measurement.
func reportFile(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(stderr)
	output := flags.String("output", defaultOutput, "page whose generated parts are written; - prints them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("report takes one file of results")
	}
	file, err := os.Open(flags.Arg(0))
	if err != nil {
		return err
	}
	defer file.Close()
	results, err := result.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", flags.Arg(0), err)
	}
	return report.Write(*output, stdout, results)
}

func measureAndReport(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	results, err := o.measureInto(ctx, stderr)
	if err != nil {
		return err
	}
	return report.Write(o.output, stdout, results)
}

// measureInto keeps the results in a file. It appears under its name only when
// it is whole, so that the last whole measurement is never lost.
func (o options) measureInto(ctx context.Context, progress io.Writer) (results result.Results, err error) {
	if err := os.MkdirAll(filepath.Dir(o.results), 0o755); err != nil {
		return nil, err
	}
	draft, err := os.Create(o.results + ".part")
	if err != nil {
		return nil, err
	}
	results, err = measure(ctx, o, draft, progress)
	if err := errors.Join(err, draft.Close()); err != nil {
		return nil, err
	}
	return results, os.Rename(draft.Name(), o.results)
}

// options are what can be chosen.
type options struct {
	runs     int
	duration time.Duration
	warmUp   time.Duration
	callers  []int
	only     []string
	output   string
	results  string
	dir      string
	// syncDelay is added to each fsync.
	syncDelay time.Duration
	// repository is idnode's checkout.
	repository string
	// command is what was typed.
	command string
}

// nameGenerators stands in --only for the generators, beside the systems.
const nameGenerators = "generators"

func parseOptions(args []string, stderr io.Writer) (options, error) {
	o := options{command: strings.Join(append([]string{"go run ."}, args...), " ")}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.runs, "runs", 7, "how often everything is measured, in turns")
	flags.DurationVar(&o.duration, "duration", 2500*time.Millisecond, "how long each load lasts")
	flags.DurationVar(&o.warmUp, "warm-up", 500*time.Millisecond, "how long before that it is put on without counting")
	callers := flags.String("callers", "1,64,512", "how many callers, with commas between")
	names := strings.Join(append(system.Names(), nameGenerators), ",")
	only := flags.String("only", names, "what to measure, with commas between")
	flags.StringVar(&o.output, "output", defaultOutput, "page whose generated parts are written; - prints them")
	flags.StringVar(&o.results, "results", defaultResults, "file for what was measured")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "folder for all data, on the disk to be measured")
	flags.DurationVar(&o.syncDelay, "sync-delay", 0,
		"how much longer each fsync of a system takes, by strace; with an --output and --results of its own")
	flags.StringVar(&o.repository, "repository", "..", "idnode's checkout")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o.only = strings.Split(*only, ",")
	for _, text := range strings.Split(*callers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return options{}, fmt.Errorf("--callers: %w", err)
		}
		o.callers = append(o.callers, n)
	}
	return o, o.check(names, flags.Args())
}

func (o options) check(names string, rest []string) error {
	for _, name := range o.only {
		if !strings.Contains(","+names+",", ","+name+",") {
			return fmt.Errorf("--only: there is no %q among %s", name, names)
		}
	}
	for _, n := range o.callers {
		if n < 1 || n > 4096 {
			return fmt.Errorf("--callers must be 1 to 4096, not %d", n)
		}
	}
	switch {
	case len(rest) != 0:
		return fmt.Errorf("what is %q?", rest[0])
	case o.syncDelay < 0 || o.syncDelay > time.Second:
		return errors.New("--sync-delay must be 0 to 1s")
	case o.syncDelay > 0 && (o.output == defaultOutput || o.results == defaultResults):
		return errors.New("--sync-delay needs an --output and --results of its own: the page is about the disk as it is")
	case o.runs < 1 || o.duration <= 0 || o.warmUp <= 0:
		return errors.New("--runs, --duration and --warm-up must be above 0")
	}
	return nil
}
