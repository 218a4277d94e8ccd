package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// confirmation asks a person before an irreversible change.
type confirmation struct {
	yes bool
	in  io.Reader
	err io.Writer
	// person says that a person can answer.
	person bool
}

func (c *confirmation) register(f *pflag.FlagSet) {
	f.BoolVarP(&c.yes, "yes", "y", false, "do not ask")
}

// of takes the streams of a command that runs.
func (c *confirmation) of(cmd *cobra.Command) *confirmation {
	c.in, c.err = cmd.InOrStdin(), cmd.ErrOrStderr()
	c.person = isTerminal(c.in)
	return c
}

// isTerminal reports whether a person may be at the other end. A pipe, a file or another device,
// such as /dev/null, is no terminal.
func isTerminal(stream any) bool {
	if in, ok := stream.(*input); ok {
		stream = in.Reader
	}
	file, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// errNotConfirmed ends a command whose question was not answered with yes.
var errNotConfirmed = errors.New("nothing was done: it was not confirmed; answer yes, or use --yes")

// ask returns nil if the answer is yes, or was given beforehand. What is on a pipe or
// in a file was not written as the answer to this question.
func (c *confirmation) ask(question string) error {
	switch {
	case c.yes:
		return nil
	case !c.person:
		return usagef("nothing was done: this asks before it is done, and the standard input is no terminal; say --yes. %s", question)
	}
	fmt.Fprintf(c.err, "%s Type yes to go on: ", question)
	answer, _ := bufio.NewReader(c.in).ReadString('\n') // Without an answer it is no.
	if strings.EqualFold(strings.TrimSpace(answer), "yes") {
		return nil
	}
	fmt.Fprintln(c.err)
	return errNotConfirmed
}

// replace asks before a file is replaced. Anything else than a file, such as a device,
// is not: the file would take its place.
func (c *confirmation) replace(path string) error {
	if path == standardOutput {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return usagef("%s is no regular file and is not replaced; - is the standard output", path)
	}
	return c.ask(path + " exists already and will be replaced.")
}

// progressPause is between two lines of progress.
const progressPause = 2 * time.Second

// progress says on stderr how far long work has come, a line at a time, so that
// it reads well in a log too. Short work says nothing.
type progress struct {
	w    io.Writer
	next time.Time
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, next: time.Now().Add(progressPause)}
}

// say prints a line, unless the previous line is too new.
func (p *progress) say(format string, args ...any) {
	if now := time.Now(); now.After(p.next) {
		fmt.Fprintf(p.w, format+"\n", args...)
		p.next = now.Add(progressPause)
	}
}

// merged returns what says how many names of all were merged.
func (p *progress) merged(all int64) func(names int64) {
	return func(names int64) { p.say("%d of %d names merged", names, all) }
}
