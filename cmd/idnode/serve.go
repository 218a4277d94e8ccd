package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/heap"
	"github.com/idnode/idnode/server/sdnotify"
)

// server is a node, as serve and dev run it.
type server interface {
	sdnotify.Node
	// Run serves until ctx ends and stops in bounded time; or it returns the error that ended the node.
	Run(ctx context.Context) error
	RaftAddr() string
	HTTPAddr() string
	// HeldBytes is what is held for callers.
	HeldBytes() int64
	// Reload reads again what can be read again while the node runs.
	Reload()
}

// newServer assembles a node that does not run yet.
type newServer func(cfg *config.Config, log *slog.Logger) (server, error)

func newServeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one node",
		Long: `Runs one node until it is told to stop (Ctrl-C, SIGTERM), and then stops cleanly.
It ends by itself, with one line that says why, when it cannot go on. Exit code 1:
its disk stalls, a port is taken, or the like; starting it again may help. 4: its
data is damaged; 5: the cluster refuses it: it was removed, has no token to
join by where it needs one, its tag is another node's, the nodes in --peer or --join
belong to another cluster than its data, its data is gone where --cluster-id says that there
was a cluster, or its data or the cluster's log is of
another version than this program reads; 2: it has no roles and names no administrators, its list of
peers only names itself, or its data directory is another node's. Those need a person;
with --stay-down the process then waits until it is stopped.

Every flag can also come from the environment (--call-timeout is
IDNODE_CALL_TIMEOUT) and from a YAML file (--config FILE, key call-timeout). A flag
wins over the environment, that over the file, and that over the default. Several
values are given by repeating the flag, or with commas between them.`,
		Example: `  idnode serve --tag A --data-dir a --grpc 127.0.0.1:7400 --raft 127.0.0.1:7401 \
    --peer A=127.0.0.1:7400 --peer B=127.0.0.1:7410 --peer C=127.0.0.1:7420
  idnode serve --data-dir d --grpc 127.0.0.1:7430 --raft 127.0.0.1:7431 --join 127.0.0.1:7400
  idnode cluster join-token --tag D | idnode serve --config D.yaml --join-token-file -
  idnode serve --config /etc/idnode.yaml --print-config`,
	}
	groups := config.AddFlags(cmd.Flags())
	printConfig := cmd.Flags().Bool("print-config", false, "print the resulting configuration as YAML, and end")
	cmd.SetUsageFunc(func(cmd *cobra.Command) error { return serveUsage(cmd, groups) })
	cmd.RunE = a.enter(func(cmd *cobra.Command, _ []string) error {
		load := func() (*config.Config, error) { return config.Load(cmd.Flags(), a.env) }
		cfg, err := untilEnd(cmd.Context(), load)
		if err != nil {
			return &usageError{err}
		}
		cfg.Stdin = a.stdin
		if *printConfig {
			return cfg.Print(a.stdout)
		}
		if err := mayRunNodes("serve"); err != nil {
			return err
		}
		return serve(cmd.Context(), a, cfg, load)
	})
	return cmd
}

// mayRunNodes refuses Windows: the log renames open files, which Windows does not, and a
// new file may be gone there after a power cut.
func mayRunNodes(command string) error {
	if runtime.GOOS == "windows" {
		return usagef("%s runs on Linux and macOS: on Windows idnode has the commands of clients", command)
	}
	return nil
}

// serveUsage shows the flags under headings: a list of forty hides the four that a node needs.
func serveUsage(cmd *cobra.Command, groups []config.FlagGroup) error {
	other := pflag.NewFlagSet("", pflag.ContinueOnError)
	other.SortFlags = false
	for _, name := range []string{"config", "print-config", "help"} {
		other.AddFlag(cmd.Flags().Lookup(name))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
	for _, g := range append(groups, config.FlagGroup{Title: "Other", Flags: other}) {
		fmt.Fprintf(&b, "\n%s:\n%s", g.Title, g.Flags.FlagUsages())
	}
	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

// serve runs a node. After each SIGHUP it reads the settings again, of which the log level changes.
func serve(ctx context.Context, a *app, cfg *config.Config, again func() (*config.Config, error)) error {
	log, err := a.nodeLogger(cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return err
	}
	manager, err := sdnotify.FromEnv(a.getenv)
	if err != nil {
		return &usageError{err}
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Ignore(syscall.SIGHUP) // The last lines of the log may still be on their way.
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, profileSignal)
	go profiles(ctx, asked, cfg.DataDir, log)
	err = runServer(ctx, a.newServer, cfg, log, manager, hangups, func() { a.changeLevel(log, again) })
	if code := exitCode(err); cfg.StayDown && (code == exitUsage || code == exitDamaged || code == exitRefused) {
		log.Error("this node is down for good, and stays down until it is stopped: starting it again does not help", "error", err)
		<-ctx.Done()
	}
	return err
}

// stopLimit bounds a whole stop: the unit, the manifests and the compose file give a node
// longer. The steps of a stop have bounds of their own, but what hangs may overrun them.
const stopLimit = 24 * time.Second

// runServer runs a node until ctx ends or it ends by itself. With each of hangups it reloads, and calls hungUp.
func runServer(ctx context.Context, newServer newServer, cfg *config.Config, log *slog.Logger, manager *sdnotify.Manager,
	hangups <-chan os.Signal, hungUp func(),
) error {
	n, err := newServer(cfg, log)
	if err != nil {
		return &endedError{err}
	}
	heap.FollowLimit(log)
	defer heap.Relax(n.HeldBytes)()
	go func() {
		if err := manager.Follow(ctx, n); err != nil {
			log.Warn("the service manager cannot be told", "error", err)
		}
	}()
	ended := make(chan error, 2)
	go func() { ended <- n.Run(ctx) }()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(stopLimit, func() { ended <- fmt.Errorf("not everything had stopped within %s", stopLimit) })
	})()
	for {
		select {
		case <-hangups:
			n.Reload()
			hungUp()
		case err := <-ended:
			if err != nil {
				return &endedError{err}
			}
			return nil
		}
	}
}

// changeLevel gives the log the level that the settings have now.
func (a *app) changeLevel(log *slog.Logger, again func() (*config.Config, error)) {
	cfg, err := again()
	if err == nil {
		err = a.logLevel.UnmarshalText([]byte(cfg.LogLevel))
	}
	if err != nil {
		log.Error("the settings cannot be read again, and the log level stays", "error", err)
		return
	}
	log.Info("the settings were read again for the log level", "log_level", cfg.LogLevel)
}

func newLogger(w io.Writer, level slog.Leveler, format string) *slog.Logger {
	opts := slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(escaped{w}, &opts))
	}
	return slog.New(slog.NewTextHandler(w, &opts))
}

// escaped writes lines of JSON, escaped for terminals. The text handler quotes by itself.
type escaped struct{ to io.Writer }

func (e escaped) Write(line []byte) (int, error) {
	if _, err := io.WriteString(e.to, docid.Escape(strings.TrimSuffix(string(line), "\n"))+"\n"); err != nil {
		return 0, err
	}
	return len(line), nil
}

// configOf returns the configuration that flags of serve give, with nothing from the environment.
func configOf(flags []string) (*config.Config, error) {
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(fs)
	if err := fs.Parse(flags); err != nil {
		return nil, err
	}
	return config.Load(fs, nil)
}
