// Command invoicing stores invoices in an SQLite database, and numbers them without a
// hole. It may be killed at any moment and started again: README.md says why that is enough.
//
//	invoicing -db FILE -endpoints A,B,C run COUNT   until there are COUNT invoices, all numbered
//	invoicing -db FILE audit [COUNT]                are the numbers 1 to the last, each once, but for COUNT on no invoice?
//	invoicing -db FILE last                         the greatest number in the books
//	invoicing -db FILE holders < NUMBERS            number,key of each number on a line of the standard input
package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/idnode/idnode/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "invoicing:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("invoicing", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("db", "invoices.db", "database file")
	endpoints := flags.String("endpoints", "127.0.0.1:7400", "gRPC addresses of the nodes, with commas between")
	name := flags.String("series", "invoices", "series of the numbers; it must be defined")
	batch := flags.Int("batch", 500, "invoices of one transaction and of one call, at most 1000")
	dieAt := flags.String("die-at", "", "end like a killed process before this step of some batch: "+strings.Join(steps, ", "))
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dieAt != "" && !slices.Contains(steps, *dieAt) {
		return fmt.Errorf("-die-at %q is none of %s", *dieAt, strings.Join(steps, ", "))
	}
	command := flags.Args()
	if len(command) > 0 && command[0] != "run" {
		if _, err := os.Stat(*path); err != nil {
			return err // It would be made, and found to be in order.
		}
	}
	db, err := openBooks(ctx, *path)
	if err != nil {
		return err
	}
	defer db.Close()
	switch {
	case len(command) == 2 && command[0] == "run":
		count, err := strconv.Atoi(command[1])
		if err != nil || *batch < 1 || *batch > 1000 {
			return fmt.Errorf("%q is no count, or %d no batch", command[1], *batch)
		}
		c, err := client.New(ctx, client.Config{Endpoints: strings.Split(*endpoints, ",")})
		if err != nil {
			return err
		}
		defer func() { _ = c.Close(ctx) }() // It holds nothing that would be lost.
		clerk := &clerk{books: db, series: c.Series(*name), batch: *batch, dieAt: *dieAt}
		if err := clerk.run(ctx, count); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%d invoices are numbered and confirmed\n", count)
		return nil
	case len(command) > 0 && command[0] != "run":
		return db.ask(ctx, command, stdin, stdout)
	default:
		return errUse
	}
}

var errUse = errors.New("use: invoicing [flags] run COUNT, audit [COUNT], last or holders")

// ask answers questions about the books, without a cluster.
func (b books) ask(ctx context.Context, command []string, stdin io.Reader, stdout io.Writer) error {
	switch {
	case len(command) == 1 && command[0] == "audit":
		last, err := b.audit(ctx, 0)
		if err == nil {
			fmt.Fprintf(stdout, "ok: 1 to %d, each once\n", last)
		}
		return err
	case len(command) == 2 && command[0] == "audit":
		none, err := strconv.Atoi(command[1])
		if err != nil {
			return errUse
		}
		last, err := b.audit(ctx, none)
		if err == nil {
			fmt.Fprintf(stdout, "ok: 1 to %d, each once, %d of them on no invoice\n", last, none)
		}
		return err
	case len(command) == 1 && command[0] == "last":
		last, err := b.last(ctx)
		if err == nil {
			fmt.Fprintln(stdout, last)
		}
		return err
	case len(command) == 1 && command[0] == "holders":
		return b.holders(ctx, stdin, stdout)
	default:
		return errUse
	}
}

// holders writes what 'idnode series reconcile --file' reads: which invoice has each of the
// numbers.
func (b books) holders(ctx context.Context, numbers io.Reader, to io.Writer) error {
	out := csv.NewWriter(to)
	if err := out.Write([]string{"number", "key"}); err != nil {
		return err
	}
	lines := bufio.NewScanner(numbers)
	for lines.Scan() {
		number, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			return err
		}
		key, err := b.holder(ctx, number)
		if err != nil {
			return err
		}
		if err := out.Write([]string{lines.Text(), key}); err != nil {
			return err
		}
	}
	out.Flush()
	return errors.Join(lines.Err(), out.Error())
}
