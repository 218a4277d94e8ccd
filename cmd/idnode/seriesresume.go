package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/docid"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

func newSeriesCloseCommand(a *app) *cobra.Command {
	var sure confirmation
	cmd := &cobra.Command{
		Use:   "close NAME SCOPE",
		Short: "End a scope: it gives no more numbers",
		Long: `Closes a scope, and prints its last number. Its open numbers can still be confirmed,
voided and released. A closed scope stays closed, so the command asks first. SCOPE is
as 'series report' shows it.`,
		Example: "  idnode series close invoices 2026,BERLIN\n  idnode series close orders -",
		Args:    cobra.ExactArgs(2),
	}
	sure.register(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		scope, err := parseScope(args[1])
		if err != nil {
			return err
		}
		if err := sure.of(cmd).ask(fmt.Sprintf("Closes scope %s of %s for good: it gives no more numbers.", quote(args[1]), quote(args[0]))); err != nil {
			return err
		}
		msg := &idnodev1.CloseScopeRequest{Database: s.database, Series: args[0], Scope: scope}
		res, err := invoke(ctx, s.keyed, idnodev1.NewSeriesServiceClient, idnodev1.SeriesServiceClient.CloseScope, msg)
		return s.out.value(err, res, res.GetLast())
	})
}

func newSeriesResumeCommand(a *app) *cobra.Command {
	var lasts []string
	var sure confirmation
	cmd := &cobra.Command{
		Use:   "resume NAME",
		Short: "Let a series go on that a restore or a recovery suspended",
		Long: `Lets a suspended series give numbers again. It may lack the newest ones: look at the
books first, and say with --last what the last number of each scope is there. Numbers
between are voided, without a key. A number that is in the books and is not said
comes again, so the command asks first.`,
		Example: "  idnode series resume invoices --last 2026,BERLIN=4711 --last 2026,PARIS=312\n  idnode series resume orders --last -=99",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringArrayVar(&lasts, "last", nil, "SCOPE=NUMBER: the last number of a scope that is in the books; one flag for each")
	sure.register(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		msg := &idnodev1.ResumeSeriesRequest{Database: s.database, Series: args[0]}
		for _, text := range lasts {
			last, err := parseLast(text)
			if err != nil {
				return err
			}
			msg.Books = append(msg.Books, last)
		}
		if err := sure.of(cmd).ask(resumeQuestion(args[0], lasts)); err != nil {
			return err
		}
		res, err := invoke(ctx, s.change, idnodev1.NewSeriesServiceClient, idnodev1.SeriesServiceClient.ResumeSeries, msg)
		return s.out.value(err, res, docid.Escape(args[0])+" resumed")
	})
}

func parseLast(text string) (*idnodev1.ScopeInBooks, error) {
	name, number, ok := strings.Cut(text, "=")
	if !ok {
		return nil, usagef("--last must be SCOPE=NUMBER, not %q", text)
	}
	scope, err := parseScope(name)
	if err != nil {
		return nil, err
	}
	last, err := parseNumber("the number of --last", number)
	return &idnodev1.ScopeInBooks{Scope: scope, Last: last}, err
}

func resumeQuestion(name string, lasts []string) string {
	known := "the series knows all numbers that are in the books"
	if len(lasts) > 0 {
		known = "no number of the books is above " + quote(strings.Join(lasts, " ")) + ", or unknown in another scope"
	}
	return fmt.Sprintf("Resumes %s: %s. If that is wrong, numbers come twice.", quote(name), known)
}
