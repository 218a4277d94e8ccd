// Command invoicing stores invoices in an SQLite database, and numbers them without a
// hole. It may be killed at any moment and started again: README.md says why that is enough.
//
//	invoicing -db FILE -endpoints A,B,C run COUNT   until there are COUNT invoices, all numbered
//	invoicing -db FILE audit                        are the numbers 1 to the last, each once?
package main

import (
	"context"
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
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "invoicing:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
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
	if len(command) == 1 && command[0] == "audit" {
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
	case len(command) == 1 && command[0] == "audit":
		last, err := db.audit(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "ok: 1 to %d, each once\n", last)
		return nil
	default:
		return fmt.Errorf("use: invoicing [flags] run COUNT, or invoicing [flags] audit")
	}
}
