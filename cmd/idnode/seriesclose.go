package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

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
	}
	sure.register(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		scope, err := parseScope(args[1])
		if err != nil {
			return err
		}
		if err := s.confirm(ctx, sure.of(cmd), fmt.Sprintf("Closes scope %s of %s for good: it gives no more numbers.", quote(args[1]),
			quote(args[0]))); err != nil {
			return err
		}
		msg := &idnodev1.CloseScopeRequest{Database: s.database, Series: args[0], Scope: scope}
		res, err := invoke(ctx, s.keyed, idnodev1.NewSeriesServiceClient, idnodev1.SeriesServiceClient.CloseScope, msg)
		return s.out.value(err, res, res.GetLast())
	})
}
