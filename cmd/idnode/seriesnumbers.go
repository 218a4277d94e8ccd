package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

func newSeriesTakeCommand(a *app) *cobra.Command {
	var msg idnodev1.TakeNumbersRequest
	cmd := &cobra.Command{
		Use:   "take NAME --key K",
		Short: "Give documents their numbers, and print these",
		Long: `Gives each key a number, or none of them, and prints the texts, one a line in the order
of the keys. A key that has a number keeps it. If one of the numbers is voided the
command fails after it printed them: such a number belongs to no document.

With --number the document has that number already: another tool gave it, or a hand. The
key has it then, confirmed, so the command asks first. It is above the scope's last number,
and those between are voided for the reason; or below the first one of the series; or one
that another key may get. It needs the right series, and is in the audit log.`,
		Example: `  idnode series take invoices --key 4711
  idnode series take invoices --key 4711 --key 4712 --date 2026-12-31 --value branch=BERLIN
  idnode series take till --key till3-1 --key till3-2 --label till3 --expires-in 72h
  idnode series take invoices --key 4650 --number 481 --date 2026-03-02 --because 'moved in from the books'`,
	}
	f := cmd.Flags()
	registerKeys(f, &msg.Keys)
	f.StringVar(&msg.Date, "date", "", "the document's date, as 2026-12-31 (default: the present day in the series' zone)")
	values := f.StringArray("value", nil, "a value of the format, as in branch=BERLIN; one flag for each")
	f.StringVar(&msg.Label, "label", "", "what is stored with each new number, at most 64 bytes")
	f.Duration("expires-in", 0, "how long the numbers stay open, at most 87600h (default: as the series says)")
	f.Int64Var(&msg.Number, "number", 0, "the number that the document has already; with one --key and --because")
	f.StringVar(&msg.Because, "because", "", "with --number: why, 1 to 128 bytes")
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) (err error) {
		if err := needKeys(msg.GetKeys()); err != nil {
			return err
		}
		if err := s.confirmEntered(ctx, sure, args[0], &msg, f.Changed("number")); err != nil {
			return err
		}
		if msg.ExpiresIn, err = expiresIn(f); err != nil {
			return err
		}
		if msg.Values, err = parseValues(*values); err != nil {
			return err
		}
		msg.Database, msg.Series = s.database, args[0]
		res, err := seriesVia(s.keyed).TakeNumbers(ctx, &msg)
		if err != nil {
			return err
		}
		s.out.result(res, func(io.Writer) {
			for _, n := range res.GetNumbers() {
				s.out.line(n.GetText())
			}
		})
		if res.GetScopeBegun() && !s.out.json {
			fmt.Fprintf(a.stderr, "%s is a new scope: this is its first number\n", docid.Escape(scopeText(res.GetNumbers()[0].GetScope())))
		}
		return refuseVoided(res.GetNumbers())
	})
}

// confirmEntered asks before a number is entered.
func (s *clusterClient) confirmEntered(ctx context.Context, sure *confirmation, series string, msg *idnodev1.TakeNumbersRequest,
	given bool,
) error {
	switch {
	case !given && msg.GetBecause() == "":
		return nil
	case msg.GetNumber() < 1 || msg.GetBecause() == "" || len(msg.GetKeys()) != 1:
		return usagef("--number, which is above zero, goes with --because and exactly one --key")
	}
	return s.confirm(ctx, sure, fmt.Sprintf("Confirms for good that %s has number %d of %s, and voids the numbers that it passes over.",
		quote(msg.GetKeys()[0]), msg.GetNumber(), quote(series)))
}

func parseValues(given []string) (map[string]string, error) {
	values := map[string]string{}
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("--value must be NAME=VALUE, not %q", text)
		}
		if _, twice := values[name]; twice {
			// The last one would win, and the number would be of the wrong branch.
			return nil, usagef("--value has %s twice", quote(name))
		}
		values[name] = value
	}
	return values, nil
}

// refuseVoided fails if a number was voided: a script would put it on a document.
func refuseVoided(numbers []*idnodev1.SeriesNumber) error {
	for _, n := range numbers {
		if n.GetState() == idnodev1.NumberState_NUMBER_STATE_VOIDED {
			return fmt.Errorf("number %s of key %s is voided: %s", n.GetText(), quote(n.GetKey()), n.GetReason())
		}
	}
	return nil
}

// registerKeys adds --key. A key may have commas, so each key has a flag of its own.
func registerKeys(f *pflag.FlagSet, keys *[]string) {
	f.StringArrayVar(keys, "key", nil, "the document's own id, 1 to 128 bytes; one flag for each (required)")
}

func needKeys(keys []string) error {
	if len(keys) == 0 {
		return usagef("--key is required")
	}
	return nil
}

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

// numbersOf says whose numbers a question is about.
func numbersOf(series string, keys []*idnodev1.NumberOf) string {
	if len(keys) == 1 {
		return fmt.Sprintf("the number of %s in %s", quote(keys[0].GetKey()), quote(series))
	}
	return fmt.Sprintf("the numbers of %d keys in %s, %s first,", len(keys), quote(series), quote(keys[0].GetKey()))
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
reason. What is voided stays so, and the first reason stays, so the command asks first.`,
		Example: "  idnode series void invoices --key 4711 --reason 'order cancelled by the customer'",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, 1 to 128 bytes (required)")
	sure := a.asks(cmd)
	return a.endCommand(cmd, func(ctx context.Context, s *clusterClient, series string, keys []*idnodev1.NumberOf) error {
		if reason == "" {
			return usagef("--reason is required")
		}
		if err := s.confirm(ctx, sure, fmt.Sprintf("Voids %s for good: no document ever has them.", numbersOf(series, keys))); err != nil {
			return err
		}
		msg := &idnodev1.VoidNumbersRequest{Database: s.database, Series: series, Keys: keys, Reason: reason}
		res, err := seriesVia(s.keyed).VoidNumbers(ctx, msg)
		return s.out.numbers(err, res)
	})
}

func newSeriesReleaseCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release NAME --key K",
		Short: "Give open numbers back",
		Long: `Releases the numbers of keys, or none, and prints a line for each: text, state, key, date,
reason. Another key may get them, or they are voided, as the series says: the keys lose
them, so the command asks first.`,
		Example: "  idnode series release orders --key 4711",
	}
	sure := a.asks(cmd)
	return a.endCommand(cmd, func(ctx context.Context, s *clusterClient, series string, keys []*idnodev1.NumberOf) error {
		if err := s.confirm(ctx, sure, fmt.Sprintf("Takes %s from their keys.", numbersOf(series, keys))); err != nil {
			return err
		}
		res, err := seriesVia(s.keyed).ReleaseNumbers(ctx, &idnodev1.ReleaseNumbersRequest{Database: s.database, Series: series, Keys: keys})
		return s.out.numbers(err, res)
	})
}

// numbers prints an answer as JSON, or a line for each of its numbers, unless the call failed.
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
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s", docid.Escape(cmp.Or(n.GetText(), "-")), numberState(n),
		docid.Escape(n.GetKey()), n.GetDate(), docid.Escape(n.GetReason()))
	if n.GetNote() != "" {
		fmt.Fprint(w, "\t", docid.Escape(n.GetNote()))
	}
	fmt.Fprintln(w)
}

func numberState(n *idnodev1.SeriesNumber) string {
	state := word(n.GetState())
	if n.GetOverdue() {
		state += ", overdue"
	}
	return state
}
