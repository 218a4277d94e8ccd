// Command idcheck judges histories that lie in files, each by itself.
//
//	go run ./test/history/cmd/idcheck [--lease 300ms] [--longest 2.5s] [--search 1m] FILE…
//
// It ends with 0 if every history is right, with 1 if one is not or cannot be
// decided, and with 2 if one cannot be read. The file - is the standard input.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
)

// The exit codes.
const (
	right    = 0
	wrong    = 1
	unusable = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("idcheck", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var options check.Options
	flags.DurationVar(&options.Lease, "lease", 0, "how long after a lost quorum calls may still be made and succeed")
	flags.DurationVar(&options.Longest, "longest", 0, "how long a call may take (0 only measures)")
	flags.DurationVar(&options.Search, "search", 0,
		"how long Porcupine may search for an order of the calls on each identity, tag and id (0 does not)")
	refusals := flags.String("refusals", "", "codes with which a call may end without a quorum, separated by commas (default: the usual ones)")
	if err := flags.Parse(args); err != nil {
		return unusable
	}
	if *refusals != "" {
		options.Refusals = strings.Split(*refusals, ",")
	}
	if flags.NArg() == 0 {
		fmt.Fprintln(stderr, "idcheck: no file")
		return unusable
	}
	worst := right
	for _, name := range flags.Args() {
		code, err := judge(name, options, stdin, stdout)
		if err != nil {
			fmt.Fprintf(stderr, "idcheck: %s: %v\n", name, err)
		}
		worst = max(worst, code)
	}
	return worst
}

// judge checks one file and writes the report.
func judge(name string, o check.Options, stdin io.Reader, stdout io.Writer) (code int, err error) {
	from := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return unusable, err
		}
		defer file.Close()
		from = file
	}
	report, err := check.Stream(history.Read(from), o)
	if err != nil {
		return unusable, err
	}
	fmt.Fprintf(stdout, "%s: ", name)
	if err := report.Write(stdout, lines(name, report)); err != nil {
		return unusable, err
	}
	if !report.OK() {
		return wrong, nil
	}
	return right, nil
}

// lines reads the lines of the findings: the history is too long to be kept. It
// returns nil if the file cannot be read twice.
func lines(name string, r *check.Report) func(op int) string {
	file, err := os.Open(name)
	if err != nil || r.OK() {
		return nil
	}
	defer file.Close()
	text := make(map[int]string)
	for _, found := range append(r.Violations, r.Undecided...) {
		for _, op := range found.Ops {
			text[op] = ""
		}
	}
	in := bufio.NewReaderSize(file, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if _, wanted := text[n]; wanted {
			text[n] = strings.TrimSuffix(line, "\n")
		}
		if err != nil {
			return func(op int) string { return text[op] }
		}
	}
}
