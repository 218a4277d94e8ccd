package main

import (
	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/bench"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// completeValues makes shells complete the values of a flag that has few, for a command and its
// subcommands.
func (a *app) completeValues(cmd *cobra.Command) {
	for name, values := range map[string][]string{
		"output": {"text", "wide", "json"}, "form": {"ravendb", "csv"}, "log-level": {"debug", "info", "warn", "error"},
		"op": bench.Ops(), "via": bench.Vias(),
		"reset-by": words("SERIES_RESET_", idnodev1.SeriesReset_value), "order": words("SERIES_ORDER_", idnodev1.SeriesOrder_value),
		"on-release": words("SERIES_ON_RELEASE_", idnodev1.SeriesOnRelease_value),
		"on-expiry":  words("SERIES_ON_EXPIRY_", idnodev1.SeriesOnExpiry_value),
		"state":      words("NUMBER_STATE_", idnodev1.NumberState_value),
	} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // The flag is there.
		}
	}
	if cmd.Flags().Lookup("context") != nil {
		_ = cmd.RegisterFlagCompletionFunc("context", a.completeContexts) // The flag is there.
	}
	for _, child := range cmd.Commands() {
		a.completeValues(child)
	}
}
