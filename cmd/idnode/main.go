// Command idnode is the server and the command line of idnode in one binary.
//
// It owns what a person or a script sees: commands, flags, output, exit codes and signals. It does
// not own ids, consensus, or the assembly of a node.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // Series have time zones, and an image has no files of them.

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/bench"
	"github.com/idnode/idnode/internal/logqueue"
	"github.com/idnode/idnode/internal/nearest"
	"github.com/idnode/idnode/server/config"
)

// signalEcho is how long a further signal counts as a repetition of the first: a sender that ends
// a process and its group, as timeout(1) does, sends it twice.
const signalEcho = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Some time after the first signal the default handling is back, so that a
	// second Ctrl-C ends a process whose clean stop takes too long.
	context.AfterFunc(ctx, func() { time.AfterFunc(signalEcho, stop) })
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}

// run executes one command line and returns the exit code. It ends when the
// command is done, or soon after ctx ended. env has the form of os.Environ.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	a := &app{stdout: stdout, stderr: stderr, env: env, newServer: newNode, toTerminal: isTerminal(stdout), fromTerminal: isTerminal(stdin)}
	return a.run(ctx, args, stdin)
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string, stdin io.Reader) int {
	a.stdin = &input{ctx, stdin}
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.entered {
		// Everything that fails before a command's own code runs is cobra refusing the command line.
		err = usagef("%s; usage: %s", plainly(err.Error()), cmd.UseLine())
	}
	code := a.report(err)
	a.log.Close()
	return code
}

// input is the standard input until ctx ends, so that no command waits for a person any longer.
type input struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader. A read in progress when ctx ends is lost.
func (in *input) Read(p []byte) (int, error) {
	piece, done := make([]byte, len(p)), make(chan error, 1)
	go func() {
		size, err := in.Reader.Read(piece)
		piece = piece[:size]
		done <- err
	}()
	select {
	case err := <-done:
		return copy(p, piece), err
	case <-in.ctx.Done():
		return 0, in.ctx.Err()
	}
}

// app is shared by all commands of a run.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// toTerminal says that a person may read stdout, fromTerminal that one may answer on stdin.
	toTerminal, fromTerminal bool
	env                      []string
	newServer                newServer
	// entered says that cobra accepted the command line.
	entered bool
	// log is what stderr has become in a command that runs nodes; nil in others.
	log *logqueue.Queue
	// logLevel is that of the nodes that the command runs.
	logLevel slog.LevelVar
	// last, if set, logs the error that the command ends with: the lines of its log are JSON.
	last *slog.Logger
}

func newRootCommand(a *app) *cobra.Command {
	root := a.group(&cobra.Command{
		Use:   "idnode",
		Short: "Hands out document ids: a Raft-replicated service and its command line",
		Long: `idnode hands out ids of six kinds, and numbers for documents. Three or more nodes agree
through Raft on everything that must be unique across the cluster.

Exit codes: 0 done, 1 failed or refused, 2 wrong usage, 3 unavailable (no quorum,
no node reached, or no answer in time). A node of 'serve' that ended by itself: 4
if its data is damaged, 5 if the cluster does not take it, else 1. 'log verify' also
says 4 of damage.`,
		Example: `  idnode dev                          a whole cluster on this machine
  idnode next 'users|'                the next identity: users/1
  idnode next users/ --count 3        three server-side ids
  idnode cluster status               what a node sees of the cluster`,
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetFlagErrorFunc(badFlag)
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"server", "Servers:", []*cobra.Command{
			newServeCommand(a), newDevCommand(a), newCertsCommand(a), newAuditCommand(a), newLogCommand(a), newBenchCommand(a),
		}},
		{"ids", "Ids:", []*cobra.Command{
			newNextCommand(a), newHiloCommand(a), newIdentityCommand(a), newClaimCommand(a), newReleaseCommand(a), newClaimsCommand(a),
			newSeriesCommand(a), newSnowflakeCommand(a), newDatabaseCommand(a),
		}},
		{"cluster", "Cluster:", []*cobra.Command{newClusterCommand(a), newContextCommand(a), newHealthCommand(a)}},
		{"data", "Backups and moves:", []*cobra.Command{
			newBackupCommand(a), newRestoreCommand(a), newImportCommand(a), newExportCommand(a), newRecoverCommand(a),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
		}
		root.AddCommand(g.commands...)
	}
	root.AddCommand(newVersionCommand(a))
	a.complete(root)
	return root
}

type body func(cmd *cobra.Command, args []string) error

// enter marks that cobra accepted the command line, then runs b.
func (a *app) enter(b body) body {
	return func(cmd *cobra.Command, args []string) error {
		a.entered = true
		if cmd.Name() != "serve" { // It refuses them.
			a.warnOfVariables()
		}
		return b(cmd, args)
	}
}

// warnOfVariables warns of variables that look like idnode's: a misspelt one may lead to another cluster.
func (a *app) warnOfVariables() {
	unknown := config.UnknownVariables(a.env)
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		fmt.Fprintf(a.stderr, "idnode: warning: %s in the environment is no variable of idnode%s\n", printable(name), unknown[name])
	}
}

// group makes cmd a command that only holds others. Cobra alone would succeed for `idnode hilo nxt`.
func (a *app) group(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(children...)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = a.enter(func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			fmt.Fprintln(a.stderr, cmd.UsageString())
			return usagef("'%s' needs a command", cmd.CommandPath())
		}
		cmd.SuggestionsMinimumDistance = 2
		msg := "unknown command " + quote(args[0]) + " for '" + cmd.CommandPath() + "'"
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			msg += ", did you mean " + quote(cmp.Or(nearest.Of(args[0], near), near[0])) + "?"
		} else if below := grandchild(cmd, args[0]); below != nil {
			msg += ", did you mean '" + below.CommandPath() + "'?"
		}
		return &usageError{errors.New(msg)}
	})
	return cmd
}

// grandchild returns the command of this name in a group of cmd; nil if that is none, or several.
func grandchild(cmd *cobra.Command, name string) (found *cobra.Command) {
	for _, group := range cmd.Commands() {
		for _, c := range group.Commands() {
			if c.Name() == name && found != nil {
				return nil
			}
			if c.Name() == name {
				found = c
			}
		}
	}
	return found
}

func (a *app) getenv(key string) string {
	for i := len(a.env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(a.env[i], "="); ok && k == key {
			return v
		}
	}
	return ""
}

// version is set at build time: -ldflags "-X main.version=v1.2.3".
var version string

// versionText returns the version, or what the Go tool knows of the build.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "(devel)" {
		return cmp.Or(info.Main.Version, "devel")
	}
	return "devel"
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  idnode version",
		RunE: a.enter(func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "idnode %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}

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

// complete completes a command and those below it: how many arguments it takes, and values of flags, for shells.
func (a *app) complete(cmd *cobra.Command) {
	if cmd.Args == nil {
		cmd.Args = argsOf(cmd.Use)
	}
	for name, values := range map[string][]string{
		"output": {"text", "wide", "json"}, "form": {"ravendb", "csv"}, "log-level": {"debug", "info", "warn", "error"},
		"op": bench.Ops(), "via": bench.Vias(),
		"reset-by": words[idnodev1.SeriesReset](), "order": words[idnodev1.SeriesOrder](), "state": words[idnodev1.NumberState](),
		"on-release": words[idnodev1.SeriesOnRelease](), "on-expiry": words[idnodev1.SeriesOnExpiry](),
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
