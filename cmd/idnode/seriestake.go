package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/idnode/idnode/client/idnodev1"
)

// takeFlags say what numbers are taken for.
type takeFlags struct {
	flags     *pflag.FlagSet
	values    []string
	expiresIn time.Duration
	msg       idnodev1.TakeNumbersRequest
}

func newSeriesTakeCommand(a *app) *cobra.Command {
	var t takeFlags
	cmd := &cobra.Command{
		Use:   "take NAME --key K",
		Short: "Give documents their numbers, and print these",
		Long: `Gives each key a number, or none of them, and prints the texts, one a line in the order
of the keys. A key that has a number keeps it. If one of the numbers is voided the
command fails after it printed them: such a number belongs to no document.`,
		Example: `  idnode series take invoices --key 4711
  idnode series take invoices --key 4711 --key 4712 --date 2026-12-31 --scope branch=BERLIN
  idnode series take till --key till3-1 --key till3-2 --label till3 --expires-in 72h`,
	}
	t.register(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if err := t.fill(); err != nil {
			return err
		}
		t.msg.Database, t.msg.Series = s.database, args[0]
		res, err := seriesVia(s.keyed).TakeNumbers(ctx, &t.msg)
		if err != nil {
			return err
		}
		s.out.result(res, func(io.Writer) {
			for _, n := range res.GetNumbers() {
				s.out.line(n.GetText())
			}
		})
		return refuseVoided(res.GetNumbers())
	})
}

func (t *takeFlags) register(f *pflag.FlagSet) {
	t.flags = f
	registerKeys(f, &t.msg.Keys)
	f.StringVar(&t.msg.Date, "date", "", "the document's date, as 2026-12-31 (default: the present day in the series' zone)")
	f.StringArrayVar(&t.values, "scope", nil, "a value of the format, as in branch=BERLIN; one flag for each")
	f.StringVar(&t.msg.Label, "label", "", "what is stored with each new number, at most 64 bytes")
	registerExpiresIn(f, &t.expiresIn, "how long the numbers stay open, at most 87600h (default: as the series says)")
}

// fill puts into the message what the flags do not put there themselves.
func (t *takeFlags) fill() (err error) {
	if err := needKeys(t.msg.GetKeys()); err != nil {
		return err
	}
	if t.msg.ExpiresIn, err = expiresIn(t.flags, t.expiresIn); err != nil {
		return err
	}
	t.msg.Values = map[string]string{}
	for _, given := range t.values {
		name, value, ok := strings.Cut(given, "=")
		if !ok {
			return usagef("--scope must be NAME=VALUE, not %q", given)
		}
		if _, twice := t.msg.Values[name]; twice {
			// The last one would win, and the number would be of the wrong branch.
			return usagef("--scope has %s twice", quote(name))
		}
		t.msg.Values[name] = value
	}
	return nil
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
