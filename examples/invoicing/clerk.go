package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/idnode/idnode/client"
)

// steps are what is done for a batch of invoices, in their order.
var steps = []string{"store", "take", "keep", "confirm", "finish"}

// clerk numbers invoices.
//
// Whatever it finds unfinished it takes up from the second step on, whether it has begun
// it itself or another that was killed: there is no other sweeper. Each step may be made
// any number of times, and by several clerks at once.
type clerk struct {
	books  books
	series client.Series
	batch  int
	// dieAt is the step before which the process ends.
	dieAt string
}

// run stores invoices until there are count, and finishes all.
func (c *clerk) run(ctx context.Context, count int) error {
	for {
		c.reach("store")
		stored, err := c.books.store(ctx, count, c.batch)
		if err != nil {
			return err
		}
		finished, err := c.finish(ctx)
		if err != nil || stored+finished == 0 {
			return err
		}
	}
}

// finish finishes some invoices, and returns how many.
func (c *clerk) finish(ctx context.Context) (int, error) {
	numbers, numbered, err := c.books.unfinished(ctx, c.batch)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	if !numbered {
		if numbers, err = c.number(ctx, numbers); err != nil {
			return 0, err
		}
	}
	c.reach("confirm")
	if err := insist(ctx, func() error { _, err := c.series.Confirm(ctx, numbers); return err }); err != nil {
		return 0, err
	}
	c.reach("finish")
	return len(numbers), c.books.confirmed(ctx, numbers)
}

// number takes numbers for invoices, and keeps them in the books. An invoice that has one
// gets the same again.
func (c *clerk) number(ctx context.Context, invoices []client.DocumentNumber) (numbers []client.DocumentNumber, err error) {
	want := client.NumberRequest{Label: "invoicing"}
	for _, i := range invoices {
		want.Keys = append(want.Keys, i.Key)
	}
	c.reach("take")
	err = insist(ctx, func() (err error) { numbers, err = c.series.Take(ctx, want); return err })
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		if n.State == client.NumberVoided {
			return nil, fmt.Errorf("the number %s of invoice %s is voided (%s): that is for a person to look at", n.Text, n.Key, n.Reason)
		}
	}
	c.reach("keep")
	return numbers, c.books.keep(ctx, numbers)
}

// passing are the errors after which the same call again is right: the cluster was not
// there, or nobody knows whether the call counted.
var passing = []error{client.ErrNoQuorum, client.ErrNoEndpoint, client.ErrOverloaded, client.ErrOutcomeUnknown}

// insist makes a call until it is answered. The client has tried all nodes by then.
func insist(ctx context.Context, call func() error) error {
	for {
		err := call()
		if !slices.ContainsFunc(passing, func(e error) bool { return errors.Is(err, e) }) {
			return err
		}
		fmt.Fprintln(os.Stderr, "invoicing: once more after", err)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reach ends the process if it is to end before this step. One time in three, so that it
// happens to batches that were begun before too.
func (c *clerk) reach(step string) {
	if step == c.dieAt && rand.IntN(3) == 0 {
		os.Exit(9)
	}
}
