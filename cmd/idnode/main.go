// Command idnode is the server and the command line of idnode in one binary.
//
// It owns what a person or a script sees: commands, flags, output, exit codes and signals. It does
// not own ids, consensus, or the assembly of a node.
package main

import (
	"cmp"
	"context"
	"encoding/json"
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

	"github.com/idnode/idnode/internal/logqueue"
	"github.com/idnode/idnode/internal/nearest"
	"github.com/idnode/idnode/server/config"
)

// signalEcho is how long a further signal counts as a repetition of the first: a sender that ends
// a process and its group, as timeout(1) does, sends it twice.
const signalEcho = 250 * time.Millisecond

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
	a.strict(root)
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
	piece := make([]byte, len(p))
	n, err := untilEnd(in.ctx, func() (int, error) { return in.Reader.Read(piece) })
	return copy(p, piece[:n]), err
}

// untilEnd returns what do returns, or an error as soon as ctx ends: a pipe, a terminal or a lost
// disk may block for ever, and a large file for long. What do goes on with after that is lost, so
// it only reads.
func untilEnd[T any](ctx context.Context, do func() (T, error)) (result T, err error) {
	done := make(chan func() (T, error), 1)
	go func() {
		result, err := do()
		done <- func() (T, error) { return result, err }
	}()
	select {
	case end := <-done:
		return end()
	case <-ctx.Done():
		return result, ctx.Err()
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
if its data is damaged, 5 if the cluster refuses it, else 1. 'log verify' also
says 4 of damage.`,
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetFlagErrorFunc(badFlag)
	root.SetHelpFunc(help)
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
	cmd.Args, cmd.Example = cobra.ArbitraryArgs, mostUsed[cmd.Name()]
	cmd.RunE = a.enter(func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			fmt.Fprintln(a.stderr, cmd.UsageString())
			return usagef("'%s' needs a command", cmd.CommandPath())
		}
		return unknownCommand(cmd, args[0])
	})
	return cmd
}

// unknownCommand says that a group has no such command, and which may be meant.
func unknownCommand(group *cobra.Command, name string) error {
	group.SuggestionsMinimumDistance = 2
	msg := "unknown command " + quote(name) + " for '" + group.CommandPath() + "'"
	if near := group.SuggestionsFor(name); len(near) > 0 {
		msg += ", did you mean " + quote(cmp.Or(nearest.Of(name, near), near[0])) + "?"
	} else if below := grandchild(group, name); below != nil {
		msg += ", did you mean '" + below.CommandPath() + "'?"
	} else if group.HasParent() {
		msg += "; there are " + strings.Join(childrenOf(group), ", ")
	}
	return &usageError{errors.New(msg)}
}

func childrenOf(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// strict has cobra's own commands refuse what they do not know: alone they print help and succeed.
func (a *app) strict(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			a.group(cmd)
		case "help":
			cmd.Run, cmd.Args = nil, cobra.ArbitraryArgs
			cmd.RunE = a.enter(func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				switch {
				case err != nil:
					return &usageError{err}
				case len(rest) == 0:
					about.InitDefaultHelpFlag()
					return about.Help()
				case about.HasSubCommands():
					return about.RunE(about, rest)
				}
				return usagef("'%s' has no commands", about.CommandPath())
			})
		}
	}
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
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  idnode version\n  idnode version -o json",
	}
	format := cmd.Flags().StringP("output", "o", "text", "text, or json: one object")
	cmd.RunE = a.enter(func(*cobra.Command, []string) error {
		out, err := newPrinter(a.stdout, *format)
		switch {
		case err != nil:
			return &usageError{err}
		case out.json:
			return json.NewEncoder(a.stdout).Encode(map[string]string{
				"version": versionText(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			})
		}
		_, err = fmt.Fprintf(a.stdout, "idnode %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
	return cmd
}
