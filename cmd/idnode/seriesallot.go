package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/idnodev1"
)

func newSeriesAllotCommand(a *app) *cobra.Command {
	var allotment idnodev1.Allotment
	var withdraw bool
	cmd := &cobra.Command{
		Use:   "allot NAME SCOPE --from N --to N",
		Short: "Have a scope give the numbers that an authority allotted, and no others",
		Long: `Allots a range of numbers to a scope. A scope with such ranges gives the numbers of the
first that is neither used up nor past, then those of the next, and none beyond. A range
is above all numbers that the scope has given, and overlaps no other. SCOPE is as
'series report' shows it; one that has no numbers yet begins.

With --withdraw a range is taken back that gave no number. Without any range a scope
gives all numbers again.`,
		Example: `  idnode series allot facturas 2026,SETT --from 980000001 --to 985000000 --until 2028-01-19 --note 'res. 18760000001'
  idnode series allot facturas 2026,SETT --from 980000001 --to 985000000 --withdraw`,
	}
	f := cmd.Flags()
	f.Int64Var(&allotment.From, "from", 0, "the first number (required)")
	f.Int64Var(&allotment.To, "to", 0, "the last number (required)")
	f.StringVar(&allotment.Until, "until", "", "the last day on which it gives numbers, as 2026-12-31 (default: without end)")
	f.StringVar(&allotment.Note, "note", "", "what each of its numbers is shown with, such as the authority's code; at most 64 bytes")
	f.BoolVar(&withdraw, "withdraw", false, "take the range back, which gave no number")
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		scope, err := parseScope(args[1])
		switch {
		case err != nil:
			return err
		case allotment.GetFrom() < 1 || allotment.GetTo() < allotment.GetFrom():
			return usagef("--from and --to are required: the first number is above zero, and the last not below it")
		case withdraw && (f.Changed("until") || f.Changed("note")):
			return usagef("--withdraw goes without --until and --note")
		}
		send, done := s.keyed, "allotted"
		if withdraw {
			send, done = s.change, "taken back"
		}
		res, err := seriesVia(send).AllotNumbers(ctx, &idnodev1.AllotNumbersRequest{
			Database: s.database, Series: args[0], Scope: scope, Allotment: &allotment, Withdraw: withdraw,
		})
		return s.out.value(err, res, fmt.Sprintf("%d to %d %s", allotment.GetFrom(), allotment.GetTo(), done))
	})
}
