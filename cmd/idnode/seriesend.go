package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

// endCommand is a command that changes the state of a series' numbers.
func (a *app) endCommand(cmd *cobra.Command,
	do func(ctx context.Context, s *clusterClient, series string, keys []*idnodev1.NumberOf) error,
) *cobra.Command {
	var keys []string
	var number int64
	registerKeys(cmd.Flags(), &keys)
	cmd.Flags().Int64Var(&number, "number", 0, "with one --key: only if this is the key's number in its scope")
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if err := needKeys(keys); err != nil {
			return err
		}
		switch given := cmd.Flags().Changed("number"); {
		case given && len(keys) != 1:
			return usagef("--number needs exactly one --key, not %d", len(keys))
		case given && number < 1:
			return usagef("--number must be above zero, not %d", number)
		}
		numbers := make([]*idnodev1.NumberOf, len(keys))
		for i, key := range keys {
			numbers[i] = &idnodev1.NumberOf{Key: key, Number: number}
		}
		return do(ctx, s, args[0], numbers)
	})
}

func newSeriesConfirmCommand(a *app) *cobra.Command {
	return a.endCommand(&cobra.Command{
		Use:   "confirm NAME --key K",
		Short: "Make the numbers of documents final",
		Long: `Confirms the numbers of keys, or none, and prints a line for each: text, state, key,
date, reason. What is confirmed stays so.`,
		Example: "  idnode series confirm invoices --key 4711\n  idnode series confirm orders --key 4711 --number 12",
	}, func(ctx context.Context, s *clusterClient, series string, keys []*idnodev1.NumberOf) error {
		res, err := seriesVia(s.keyed).ConfirmNumbers(ctx, &idnodev1.ConfirmNumbersRequest{Database: s.database, Series: series, Keys: keys})
		return s.out.numbers(err, res)
	})
}

func newSeriesVoidCommand(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "void NAME --key K --reason R",
		Short: "Say that open numbers belong to no document, and why",
		Long: `Voids the numbers of keys, or none, and prints a line for each: text, state, key, date,
reason. What is voided stays so, and the first reason stays.`,
		Example: "  idnode series void invoices --key 4711 --reason 'order cancelled by the customer'",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, 1 to 128 bytes (required)")
	return a.endCommand(cmd, func(ctx context.Context, s *clusterClient, series string, keys []*idnodev1.NumberOf) error {
		if reason == "" {
			return usagef("--reason is required")
		}
		msg := &idnodev1.VoidNumbersRequest{Database: s.database, Series: series, Keys: keys, Reason: reason}
		res, err := seriesVia(s.keyed).VoidNumbers(ctx, msg)
		return s.out.numbers(err, res)
	})
}

func newSeriesReleaseCommand(a *app) *cobra.Command {
	return a.endCommand(&cobra.Command{
		Use:   "release NAME --key K",
		Short: "Give open numbers back",
		Long: `Releases the numbers of keys, or none, and prints a line for each: text, state, key, date,
reason. Another key may get them, or they are voided, as the series says.`,
		Example: "  idnode series release orders --key 4711",
	}, func(ctx context.Context, s *clusterClient, series string, keys []*idnodev1.NumberOf) error {
		res, err := seriesVia(s.keyed).ReleaseNumbers(ctx, &idnodev1.ReleaseNumbersRequest{Database: s.database, Series: series, Keys: keys})
		return s.out.numbers(err, res)
	})
}

// numbers prints an answer as JSON, or a line for each of its numbers, unless the call
// failed.
func (p *printer) numbers(failed error, res interface {
	proto.Message
	GetNumbers() []*idnodev1.SeriesNumber
},
) error {
	return p.answer(failed, res, func(w io.Writer) {
		for _, n := range res.GetNumbers() {
			printNumber(w, n)
		}
	})
}

// printNumber prints a number as a line. A number that has another key by now has no text.
func printNumber(w io.Writer, n *idnodev1.SeriesNumber) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", docid.Escape(cmp.Or(n.GetText(), "-")), numberState(n),
		docid.Escape(n.GetKey()), n.GetDate(), docid.Escape(n.GetReason()))
}

func numberState(n *idnodev1.SeriesNumber) string {
	state := word(n.GetState())
	if n.GetOverdue() {
		state += ", overdue"
	}
	return state
}
