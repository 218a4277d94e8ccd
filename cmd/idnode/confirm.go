package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
)

// confirmation asks a person before an irreversible change.
type confirmation struct {
	yes bool
	in  io.Reader
	err io.Writer
	// person says that a person can answer.
	person bool
}

// asks adds --yes to a command, and returns how it asks.
func (a *app) asks(cmd *cobra.Command) *confirmation {
	c := &confirmation{in: a.stdin, err: a.stderr, person: a.fromTerminal}
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	return c
}

// isTerminal reports whether a person may be at the other end: not of a pipe, a file or another device.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

var errNotConfirmed = errors.New("nothing was done: it was not confirmed; answer yes, or use --yes")

// ask returns nil if the answer is yes, or was given beforehand. What is on a pipe or
// in a file was not written as the answer to this question.
func (c *confirmation) ask(question string) error {
	switch {
	case c.yes:
		return nil
	case !c.person:
		return usagef("nothing was done: the command asks first, and the standard input is no terminal; say --yes. %s", question)
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
