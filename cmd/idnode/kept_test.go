package main

import (
	"fmt"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/idnode/idnode/test/compat"
)

// TestCommandsAreKept: scripts have the commands, their flags and the exit codes.
func TestCommandsKept(t *testing.T) {
	names := []string{
		fmt.Sprintf("exit code %d: done", exitOK), fmt.Sprintf("exit code %d: failed", exitFailed),
		fmt.Sprintf("exit code %d: wrong usage", exitUsage), fmt.Sprintf("exit code %d: unavailable", exitUnavailable),
		fmt.Sprintf("exit code %d: damaged", exitDamaged), fmt.Sprintf("exit code %d: refused", exitRefused),
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		names = append(names, cmd.CommandPath())
		for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				names = append(names, fmt.Sprintf("%s --%s -%s %s", cmd.CommandPath(), f.Name, f.Shorthand, f.Value.Type()))
			})
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(newRootCommand(&app{}))
	compat.Names(t, compat.Commands, "commands", names)
}
