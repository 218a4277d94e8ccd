package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

func newSeriesCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "series",
		Short: "Gapless document numbers; every gap has a reason",
		Long: `A series gives numbers to the keys of documents. Store the document without a number,
take a number for the document's own id, store the number, and confirm it. The same
key has the same number, so a command whose outcome is unknown is made again.

A scope is where numbers begin at 1: a period, values, or both. SCOPE is its period and
its values in the order of the format, as in 2026,BERLIN; - is that of a series that
has neither.`,
	}, newSeriesDefineCommand(a), newSeriesDeleteCommand(a), newSeriesListCommand(a), newSeriesShowCommand(a),
		newSeriesTakeCommand(a), newSeriesConfirmCommand(a), newSeriesVoidCommand(a), newSeriesReleaseCommand(a),
		newSeriesReportCommand(a), newSeriesWhoHasCommand(a), newSeriesVerifyCommand(a),
		newSeriesAllotCommand(a), newSeriesCloseCommand(a), newSeriesResumeCommand(a), newSeriesReconcileCommand(a))
}

func newSeriesListCommand(a *app) *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "list",
		Short:   "List the series: name, keys, active or suspended, format",
		Example: "  idnode series list --prefix inv",
	}, a.client, "NAME KEYS STATE FORMAT", func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := seriesVia(s.ask).ListSeries(ctx, &idnodev1.ListSeriesRequest{
			Database: s.database, Prefix: p.prefix, PageSize: p.size, PageToken: p.token, Consistency: s.consistency,
		})
		for _, x := range res.GetSeries() {
			s.out.result(x, func(w io.Writer) {
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", docid.Escape(x.GetName()), x.GetKeys(), activity(x), docid.Escape(x.GetDefinition().GetFormat()))
			})
		}
		return res.GetNextPageToken(), len(res.GetSeries()), err
	})
}

func activity(x *idnodev1.Series) string {
	if x.GetSuspended() {
		return "suspended"
	}
	return "active"
}

func newSeriesShowCommand(a *app) *cobra.Command {
	return a.client(reading(&cobra.Command{
		Use:     "show NAME",
		Short:   "Show what a series is, and how many keys it knows",
		Example: "  idnode series show invoices",
	}), func(ctx context.Context, s *clusterClient, args []string) error {
		res, err := seriesVia(s.ask).GetSeries(ctx, &idnodev1.GetSeriesRequest{Database: s.database, Name: args[0], Consistency: s.consistency})
		return s.out.answer(err, res.GetSeries(), func(w io.Writer) { printSeries(w, res.GetSeries()) })
	})
}

func newSeriesVerifyCommand(a *app) *cobra.Command {
	return a.client(reading(&cobra.Command{
		Use:   "verify NAME",
		Short: "Check that every number is in exactly one state",
		Long: `Reads the whole series, and prints ok if every number is in exactly one state, and its
key leads to it. If not, it fails, and names the first number that is wrong.`,
		Example: "  idnode series verify invoices",
	}), func(ctx context.Context, s *clusterClient, args []string) error {
		res, send := &idnodev1.VerifySeriesResponse{}, s.ask
		for more := true; more; more = res.GetNextPageToken() != "" {
			var err error
			res, err = seriesVia(send).VerifySeries(ctx, &idnodev1.VerifySeriesRequest{
				Database: s.database, Series: args[0], Consistency: s.consistency, PageToken: res.GetNextPageToken(),
			})
			if err != nil {
				return err
			}
			send = s.askUntilAnswered // What has taken long does not end because a leader did.
		}
		s.out.result(res, func(w io.Writer) {
			if res.GetOk() {
				fmt.Fprintln(w, "ok")
			}
		})
		if !res.GetOk() {
			return fmt.Errorf("%s: number %d of scope %s %s", quote(args[0]), res.GetNumber(), scopeText(res.GetScope()), res.GetDetail())
		}
		return nil
	})
}

// noScope is the scope of a series that has neither periods nor values.
const noScope = "-"

// scopeText is a scope as parseScope reads it: its parts have no commas.
func scopeText(scope []string) string {
	if len(scope) == 0 {
		return noScope
	}
	return strings.Join(scope, ",")
}

// cutScope reads a scope and what a flag says of it; form is how the flag is written.
func cutScope(flag, form, text string) (scope []string, rest string, err error) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return nil, "", usagef("%s must be %s, not %q", flag, form, text)
	}
	scope, err = parseScope(name)
	return scope, rest, err
}

func parseNumberOf(flag, text string) (int64, error) {
	n, err := parseNumber("the number of "+flag, text)
	if err == nil && n < 1 {
		err = usagef("the number of %s must be above zero, not %d", flag, n)
	}
	return n, err
}

// scopeKey is a scope in any spelling.
func scopeKey(scope []string) string { return docid.Fold(scopeText(scope)) }

// parseScope parses a scope. The cluster decides whether it exists.
func parseScope(text string) ([]string, error) {
	if text == noScope {
		return nil, nil
	}
	scope := strings.Split(text, ",")
	for _, part := range scope {
		if part == "" {
			return nil, usagef("SCOPE must be a period and values as in 2026,BERLIN, or - for none, not %q", text)
		}
	}
	return scope, nil
}

func newSeriesCloseCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "close NAME SCOPE",
		Short: "End a scope: it gives no more numbers",
		Long: `Closes a scope, and prints its last number. Its open numbers can still be confirmed,
voided and released. A closed scope stays closed, so the command asks first. SCOPE is
as 'series report' shows it.`,
		Example: "  idnode series close invoices 2026,BERLIN\n  idnode series close orders -",
	}
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		scope, err := parseScope(args[1])
		if err != nil {
			return err
		}
		if err := s.confirm(ctx, sure, fmt.Sprintf("Closes scope %s of %s for good: it gives no more numbers.", quote(args[1]),
			quote(args[0]))); err != nil {
			return err
		}
		res, err := seriesVia(s.keyed).CloseScope(ctx, &idnodev1.CloseScopeRequest{Database: s.database, Series: args[0], Scope: scope})
		return s.out.value(err, res, res.GetLast())
	})
}

func newSeriesDeleteCommand(a *app) *cobra.Command {
	var expected int64
	cmd := &cobra.Command{
		Use:   "delete NAME --expected-version V",
		Short: "Delete a series of which no number was confirmed or voided",
		Long: `Deletes a series that was defined by mistake, and forgets its open numbers, so the command
asks first. Its name can begin another series. Once a number was confirmed or voided, a
series stays, and so does its name: close its scopes if it is to give no more numbers.`,
		Example: "  idnode series delete invoces --expected-version 1",
	}
	cmd.Flags().Int64Var(&expected, "expected-version", 0, "the version that 'series show' has (required)")
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if expected < 1 {
			return usagef("--expected-version is required, and above zero")
		}
		if !sure.yes {
			open, err := openNumbers(ctx, s, args[0])
			if err != nil {
				return err
			}
			if err := s.confirm(ctx, sure, fmt.Sprintf("Deletes %s, and forgets %s.", quote(args[0]), open)); err != nil {
				return err
			}
		}
		msg := &idnodev1.DeleteSeriesRequest{Database: s.database, Name: args[0], ExpectedVersion: expected}
		res, err := seriesVia(s.change).DeleteSeries(ctx, msg)
		return s.out.value(err, res, docid.Escape(args[0])+" deleted")
	})
}

// openNumbers returns the number of open numbers of a series, in words. A principal that may delete
// the series need not be allowed to read it.
func openNumbers(ctx context.Context, s *clusterClient, name string) (string, error) {
	scopes, err := scopesOf(ctx, s, name)
	switch {
	case reasonOf(err) == "PERMISSION_DENIED":
		return "its open numbers", nil
	case err != nil:
		return "", err
	}
	open := int64(0)
	for _, x := range scopes {
		open += x.GetOpen()
	}
	return fmt.Sprintf("its %d open numbers", open), nil
}
