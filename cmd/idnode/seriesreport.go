package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

type seriesReport struct {
	listFlags
	series string
	state  idnodev1.NumberState
	// printed counts the numbers of all scopes.
	printed int64
}

func newSeriesReportCommand(a *app) *cobra.Command {
	var r seriesReport
	var state string
	var period periodReport
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Count a series' numbers by scope and state, or list those of one state",
		Long: `Prints a line for each scope, in the order in which they began: how many numbers are in
which state; BEFORE counts those below the first one of the series, LEFT those that it
can still give: - is without end. With --state it
prints the numbers of that state in all scopes, a line for each: text, state, key,
date, reason, and the note of an allotment. Unknown ones are those that a restore or a recovery left open, with the
last key that is known.

With --from or --to it counts the numbers of documents whose dates are in that period: a
line for each scope with its first and last number, one for each state, and one for
each range of voided numbers, with the reason. --csv is for spreadsheets: a text that one
would take for a formula has an apostrophe before it.`,
		Example: "  idnode series report invoices\n  idnode series report invoices --state open\n" +
			"  idnode series report invoices --from 2026-10-01 --to 2026-12-31 --csv",
	}
	cmd.Flags().StringVar(&state, "state", "", "list the numbers that are open, confirmed, voided, released or unknown")
	f := cmd.Flags()
	f.StringVar(&period.from, "from", "", "the first date of a period, as 2026-10-01")
	f.StringVar(&period.to, "to", "", "its last date")
	f.BoolVar(&period.csv, "csv", false, "of a period: with commas, for spreadsheets")
	r.registerPages(f)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		ofPeriod := f.Changed("from") || f.Changed("to")
		switch {
		case ofPeriod && (f.Changed("state") || f.Changed("limit")):
			return usagef("--from and --to go without --state and --limit")
		case ofPeriod:
			period.series = args[0]
			return period.run(ctx, s)
		case period.csv:
			return usagef("--csv needs --from or --to")
		}
		if err := r.check(); err != nil {
			return err
		}
		r.series = args[0]
		if !cmd.Flags().Changed("state") {
			return r.pages(ctx, s, r.scopes)
		}
		if err := choose(&r.state, "--state", state); err != nil {
			return err
		}
		return r.numbers(ctx, s)
	})
}

func (r *seriesReport) page(ctx context.Context, s *clusterClient, p page) (*idnodev1.ReportSeriesResponse, error) {
	return seriesVia(s.ask).ReportSeries(ctx, &idnodev1.ReportSeriesRequest{
		Database: s.database, Series: r.series, PageSize: p.size, PageToken: p.token, Consistency: s.consistency,
	})
}

func scopesOf(ctx context.Context, s *clusterClient, name string) (all []*idnodev1.ScopeReport, err error) {
	report := seriesReport{series: name}
	err = report.pages(ctx, s, func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := report.page(ctx, s, p)
		all = append(all, res.GetScopes()...)
		return res.GetNextPageToken(), len(res.GetScopes()), err
	})
	return all, err
}

func (r *seriesReport) scopes(ctx context.Context, s *clusterClient, p page) (string, int, error) {
	res, err := r.page(ctx, s, p)
	if err != nil {
		return "", 0, err
	}
	if s.out.json {
		for _, x := range res.GetScopes() {
			s.out.object(x)
		}
	} else {
		printScopes(s.out.w, res.GetScopes(), p.token == "")
	}
	return res.GetNextPageToken(), len(res.GetScopes()), nil
}

func printScopes(w io.Writer, scopes []*idnodev1.ScopeReport, first bool) {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	if first {
		fmt.Fprintln(tw, "SCOPE\tLAST\tDATE\tBEFORE\tOPEN\tOVERDUE\tCONFIRMED\tVOIDED\tRELEASED\tUNKNOWN\tLEFT\tCLOSED")
	}
	for _, x := range scopes {
		closed := map[bool]string{true: "yes", false: "no"}[x.GetClosed()]
		fmt.Fprintf(tw, "%s\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", docid.Escape(scopeText(x.GetScope())), x.GetLast(),
			cmp.Or(x.GetLastDate(), "-"),
			x.GetBefore(), x.GetOpen(), x.GetOverdue(), x.GetConfirmed(), x.GetVoided(), x.GetReleased(), x.GetUnknown(), left(x), closed)
	}
	_ = tw.Flush()
}

// left is how many numbers a scope has left; - is without end.
func left(x *idnodev1.ScopeReport) string {
	if x.Left == nil {
		return "-"
	}
	return strconv.FormatInt(x.GetLeft(), 10)
}

// numbers prints the numbers of one state, scope after scope. Scopes without such numbers are not
// listed: a series can have a scope for each day.
func (r *seriesReport) numbers(ctx context.Context, s *clusterClient) error {
	return new(listFlags).pages(ctx, s, func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := r.page(ctx, s, p)
		if err != nil {
			return "", 0, err
		}
		for _, x := range res.GetScopes() {
			if countOf(x, r.state) == 0 {
				continue
			}
			if err := r.numbersOf(ctx, s, x.GetScope()); err != nil || r.done() {
				return "", 0, err
			}
		}
		return res.GetNextPageToken(), len(res.GetScopes()), nil
	})
}

func (r *seriesReport) done() bool { return r.limit > 0 && r.printed >= r.limit }

// numbersOf prints those of a scope, as many as the limit leaves.
func (r *seriesReport) numbersOf(ctx context.Context, s *clusterClient, scope []string) error {
	rest := r.listFlags
	if rest.limit > 0 {
		rest.limit -= r.printed
	}
	return rest.pages(ctx, s, func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := seriesVia(s.ask).ListNumbers(ctx, &idnodev1.ListNumbersRequest{
			Database: s.database, Series: r.series, Scope: scope, State: r.state, PageSize: p.size, PageToken: p.token, Consistency: s.consistency,
		})
		for _, n := range res.GetNumbers() {
			s.out.result(n, func(w io.Writer) { printNumber(w, n) })
		}
		r.printed += int64(len(res.GetNumbers()))
		return res.GetNextPageToken(), len(res.GetNumbers()), err
	})
}

// countOf returns how many numbers of a scope are in a state.
func countOf(x *idnodev1.ScopeReport, state idnodev1.NumberState) int64 {
	switch state {
	case idnodev1.NumberState_NUMBER_STATE_OPEN:
		return x.GetOpen()
	case idnodev1.NumberState_NUMBER_STATE_CONFIRMED:
		return x.GetConfirmed()
	case idnodev1.NumberState_NUMBER_STATE_VOIDED:
		return x.GetVoided()
	case idnodev1.NumberState_NUMBER_STATE_RELEASED:
		return x.GetReleased()
	default:
		return x.GetUnknown()
	}
}

func newSeriesWhoHasCommand(a *app) *cobra.Command {
	var key, text string
	cmd := &cobra.Command{
		Use:     "who-has NAME --key K | --text T",
		Short:   "Show the number of a key, or whose a number is",
		Example: "  idnode series who-has invoices --key 4711\n  idnode series who-has invoices --text INV-2026-000012",
	}
	cmd.Flags().StringVar(&key, "key", "", "the document's key")
	cmd.Flags().StringVar(&text, "text", "", "the number in the series' format")
	return a.client(reading(cmd), func(ctx context.Context, s *clusterClient, args []string) error {
		msg := &idnodev1.WhoHasRequest{Database: s.database, Series: args[0], Consistency: s.consistency}
		switch byKey, byText := cmd.Flags().Changed("key"), cmd.Flags().Changed("text"); {
		case byKey == byText:
			return usagef("exactly one of --key and --text is required")
		case byKey:
			msg.By = &idnodev1.WhoHasRequest_Key{Key: key}
		default:
			msg.By = &idnodev1.WhoHasRequest_Text{Text: text}
		}
		res, err := seriesVia(s.ask).WhoHas(ctx, msg)
		return s.out.answer(err, res.GetNumber(), func(w io.Writer) { printHolder(w, res.GetNumber()) })
	})
}

func printHolder(w io.Writer, n *idnodev1.SeriesNumber) {
	at := func(t *timestamppb.Timestamp) string {
		if t == nil {
			return ""
		}
		return t.AsTime().Format(time.RFC3339Nano)
	}
	fields(w, [][2]string{
		{"text", n.GetText()},
		{"key", n.GetKey()},
		{"state", numberState(n)},
		{"reason", n.GetReason()},
		{"scope", scopeText(n.GetScope())},
		{"number", fmt.Sprint(n.GetNumber())},
		{"date", n.GetDate()},
		{"label", n.GetLabel()},
		{"note", n.GetNote()},
		{"taken", at(n.GetTaken())},
		{"expires", at(n.GetExpires())},
	})
}
