package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/docid"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

func newSeriesDeleteCommand(a *app) *cobra.Command {
	var expected int64
	var sure confirmation
	cmd := &cobra.Command{
		Use:   "delete NAME --expected-version V",
		Short: "Delete a series of which no number was confirmed or voided",
		Long: `Deletes a series that was defined by mistake, and forgets its open numbers, so the command
asks first. Its name can begin another series. Once a number was confirmed or voided, a
series stays, and so does its name: close its scopes if it is to give no more numbers.`,
		Example: "  idnode series delete invoces --expected-version 1",
	}
	cmd.Flags().Int64Var(&expected, "expected-version", 0, "the version that 'series show' has (required)")
	sure.register(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if expected < 1 {
			return usagef("--expected-version is required, and above zero")
		}
		if !sure.yes {
			open, err := openNumbers(ctx, s, args[0])
			if err != nil {
				return err
			}
			if err := s.confirm(ctx, sure.of(cmd), fmt.Sprintf("Deletes %s, and forgets %s.", quote(args[0]), open)); err != nil {
				return err
			}
		}
		msg := &idnodev1.DeleteSeriesRequest{Database: s.database, Name: args[0], ExpectedVersion: expected}
		res, err := invoke(ctx, s.change, idnodev1.NewSeriesServiceClient, idnodev1.SeriesServiceClient.DeleteSeries, msg)
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
