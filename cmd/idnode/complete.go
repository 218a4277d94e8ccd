package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/bench"
)

// argsOf returns which arguments a command takes, by its usage: NAME VALUE, [NAME] or FILE...
func argsOf(use string) cobra.PositionalArgs {
	words := argumentsIn(use)
	least, most := len(words), len(words)
	if last := strings.Join(words[max(0, most-1):], ""); strings.HasPrefix(last, "[") {
		least--
	} else if strings.HasSuffix(last, "...") {
		most = 1 << 20
	}
	return func(cmd *cobra.Command, args []string) error {
		switch n := len(args); {
		case n < least && n > 0 && strings.Contains(args[n-1], "="):
			return usagef("%s is missing: a space goes between %s and %s, no =", words[n], words[n-1], words[n])
		case n < least:
			return usagef("%s is missing", words[n])
		case n > most && cmd.Flags().Lookup("key") != nil:
			return usagef("%s is one argument too many: a document goes with --key", quote(args[most]))
		case n > most:
			return usagef("%s is one argument too many", quote(args[most]))
		}
		return nil
	}
}

// argumentsIn returns the arguments that a usage names.
func argumentsIn(use string) []string {
	words, _, _ := strings.Cut(use, " --")
	return strings.Fields(words)[1:]
}

// complete completes a command and those below it: which arguments it takes, and values of flags, for shells.
func (a *app) complete(cmd *cobra.Command) {
	if cmd.Args == nil {
		cmd.Args = argsOf(cmd.Use)
	}
	for name, values := range map[string][]string{
		"output": {"text", "wide", "json"}, "log-level": {"debug", "info", "warn", "error"},
		"op": bench.Ops(), "via": bench.Vias(),
		"reset-by": words[idnodev1.SeriesReset](), "order": words[idnodev1.SeriesOrder](), "state": words[idnodev1.NumberState](),
		"on-release": words[idnodev1.SeriesOnRelease](), "on-expiry": words[idnodev1.SeriesOnExpiry](),
	} {
		if cmd.Flags().Lookup(name) != nil {
			completeFlag(cmd, name, values)
		}
	}
	if cmd.Flags().Lookup("context") != nil {
		_ = cmd.RegisterFlagCompletionFunc("context", a.completeContexts) // The flag is there.
	}
	for _, child := range cmd.Commands() {
		a.complete(child)
	}
}

// completeFlag completes a flag of a command with these values.
func completeFlag(cmd *cobra.Command, name string, values []string) {
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // The flag is there.
}

// namer lists names that there are in the cluster and begin so.
type namer func(ctx context.Context, s *clusterClient, begun string) ([]string, error)

// named are the arguments whose values a cluster has, by the group of commands and the argument.
var named = map[string]namer{
	"cluster TAG": listedMembers, "cluster [TAG]": listedMembers, "cluster KEY": listedSettings,
	"series NAME": listedSeries, "database DATABASE": listedDatabases,
}

// completedFor is how long a shell waits for a cluster.
const completedFor = time.Second

// completeArgs completes the arguments of a command that calls a cluster.
func (a *app) completeArgs(s *clusterClient) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		words := append(argumentsIn(cmd.Use), make([]string, len(args)+1)...)
		if word := words[len(args)]; strings.Contains(word, "FILE") {
			return nil, cobra.ShellCompDirectiveDefault
		} else if list := named[cmd.Parent().Name()+" "+word]; list != nil {
			return a.completeNames(s, list)(cmd, args, begun)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNames completes names that the cluster has.
func (a *app) completeNames(s *clusterClient, list namer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		if err := s.prepare(a, cmd.Flags()); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer s.close()
		s.timeout, s.consistency = min(s.timeout, completedFor), idnodev1.Consistency_CONSISTENCY_STALE
		names, err := list(cmd.Context(), s, begun)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func namesOf[T any](all []T, err error, name func(T) string) ([]string, error) {
	var names []string
	for _, each := range all {
		names = append(names, name(each))
	}
	return names, err
}

func listedMembers(ctx context.Context, s *clusterClient, _ string) ([]string, error) {
	res, err := clusterVia(s.ask).ListMembers(ctx, &idnodev1.ListMembersRequest{Consistency: s.consistency})
	return namesOf(res.GetMembers(), err, (*idnodev1.Member).GetTag)
}

func listedSettings(ctx context.Context, s *clusterClient, _ string) ([]string, error) {
	res, err := clusterVia(s.ask).ListSettings(ctx, &idnodev1.ListSettingsRequest{Consistency: s.consistency})
	return namesOf(res.GetSettings(), err, (*idnodev1.Setting).GetKey)
}

func listedSeries(ctx context.Context, s *clusterClient, begun string) ([]string, error) {
	res, err := seriesVia(s.ask).ListSeries(ctx, &idnodev1.ListSeriesRequest{Database: s.database, Prefix: begun, Consistency: s.consistency})
	return namesOf(res.GetSeries(), err, (*idnodev1.Series).GetName)
}

func listedDatabases(ctx context.Context, s *clusterClient, begun string) ([]string, error) {
	res, err := clusterVia(s.ask).ListDatabases(ctx, &idnodev1.ListDatabasesRequest{Prefix: begun, Consistency: s.consistency})
	return res.GetDatabases(), err
}
