package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/bench"
)

// argsOf returns how many arguments a command takes, by its usage: NAME VALUE, [NAME] or FILE...
func argsOf(use string) cobra.PositionalArgs {
	names, _, _ := strings.Cut(use, " --")
	least := strings.Count(names, " ")
	switch {
	case strings.HasSuffix(names, "]"):
		return cobra.RangeArgs(least-1, least)
	case strings.HasSuffix(names, "..."):
		return cobra.MinimumNArgs(least)
	default:
		return cobra.ExactArgs(least)
	}
}

// complete completes a command and its subcommands: how many arguments it takes, and the values of
// flags that have few, for shells.
func (a *app) complete(cmd *cobra.Command) {
	if cmd.Args == nil {
		cmd.Args = argsOf(cmd.Use)
	}
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
		a.complete(child)
	}
}
