package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/node"
)

// fakeServer is a node of this process that a test puts in place of a real one.
type fakeServer struct {
	cfg *config.Config
	// node answers the node's calls; nil if there are none.
	node *fakeNode
	// run is what Run does; nil waits for ctx.
	run func(ctx context.Context) error
	// ready is what Ready returns.
	ready error
	// reloaded gets a value at each Reload.
	reloaded chan struct{}
}

func (s *fakeServer) Run(ctx context.Context) error {
	if s.run != nil {
		return s.run(ctx)
	}
	<-ctx.Done()
	return nil
}

func (s *fakeServer) Ready(context.Context) error { return s.ready }
func (s *fakeServer) Alive() error                { return nil }
func (s *fakeServer) Reload()                     { s.reloaded <- struct{}{} }
func (s *fakeServer) GRPCAddr() string            { return s.node.addr }
func (s *fakeServer) HeldBytes() int64            { return 0 }
func (s *fakeServer) RaftAddr() string            { return s.cfg.Raft }
func (s *fakeServer) HTTPAddr() string            { return s.cfg.HTTP }

// commandWith runs a command line whose servers are made by newServer.
func commandWith(ctx context.Context, env []string, newServer func(*config.Config, *slog.Logger) (server, error), args ...string) outcome {
	var stdout, stderr bytes.Buffer
	a := &app{stdout: &stdout, stderr: &stderr, env: env, newServer: newServer}
	code := a.run(ctx, args, strings.NewReader(""))
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func TestServe(t *testing.T) {
	tests := []struct {
		name   string
		run    func(ctx context.Context) error
		code   int
		stderr string
	}{
		{"told to stop", nil, exitOK, ""},
		{
			"ended by itself", func(context.Context) error { return errors.New("this node was removed\nfrom the cluster") }, exitFailed,
			"idnode: this node was removed; from the cluster\n",
		},
		{"damaged", func(context.Context) error { return &node.DataLossError{Dir: "d", Tag: "A", Err: errors.New("torn")} }, exitDamaged, "idnode: DATA_LOSS: torn; rebuild this node: idnode cluster remove A at another node, empty d, and start it with --join ADDRESS of a member and without its old tag\n"},
		{"removed", func(context.Context) error {
			return errors.Join(fmt.Errorf("cluster: %w", member.ErrRemoved), errors.New("x"))
		}, exitRefused, "idnode: cluster: this node was removed from the cluster; x\n"},
		{"too old a program", func(context.Context) error {
			return fmt.Errorf("log entry 7: %w", &raftlog.UnknownFormatError{What: "log entry", Format: 9, Known: 8})
		}, exitRefused, "idnode: log entry 7: log entry has format 9, this binary knows formats up to 8: upgrade it\n"},
		{"of another node", func(context.Context) error { return node.ErrCertificate }, exitUsage, "idnode: " + node.ErrCertificate.Error() + "\n"},
		{"wrong variables", func(context.Context) error { return usagef("tracing: no") }, exitUsage, "idnode: tracing: no\n"},
		{"unguarded", func(context.Context) error { return config.ErrUnguarded }, exitUsage, "idnode: " + config.ErrUnguarded.Error() + "\n"},
		{
			"another node's data directory", func(context.Context) error { return fmt.Errorf("cluster: %w", member.ErrOtherNode) }, exitUsage,
			"idnode: cluster: " + member.ErrOtherNode.Error() + "\n",
		},
		{"alone by a slip", func(context.Context) error { return config.ErrAlone }, exitUsage, "idnode: " + config.ErrAlone.Error() + "\n"},
		{"a deadline inside", func(context.Context) error { return context.DeadlineExceeded }, exitFailed, "idnode: context deadline exceeded\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			newServer := func(cfg *config.Config, _ *slog.Logger) (server, error) {
				if cfg.Tag != "A" {
					t.Errorf("tag %q", cfg.Tag)
				}
				cancel()
				return &fakeServer{cfg: cfg, run: tt.run}, nil
			}
			got := commandWith(ctx, []string{"IDNODE_TAG=A", "IDNODE_TLS_SERVER_NAME=x"}, newServer, "serve", "--data-dir", t.TempDir())
			if got != (outcome{code: tt.code, stderr: tt.stderr}) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestTheLastLineIsJSONToo where the log is.
func TestTheLastLineIsJSONToo(t *testing.T) {
	got := commandWith(t.Context(), nil, func(*config.Config, *slog.Logger) (server, error) {
		return nil, fmt.Errorf("listen: %w", syscall.EADDRINUSE)
	}, "serve", "--tag", "A", "--data-dir", t.TempDir(), "--log-format", "json")
	var line struct{ Level, Error string }
	err := json.Unmarshal([]byte(got.stderr), &line)
	if err != nil || line.Level != "ERROR" || !strings.Contains(line.Error, "another program uses this address") {
		t.Errorf("%+v: %v", got, err)
	}
}

// TestServeStaysDown: with --stay-down a node that ended for good says so, and its
// process lasts until it is stopped; one that may do better the next time ends at once.
func TestServeStaysDown(t *testing.T) {
	serve := func(ctx context.Context, ended error, stderr io.Writer) int {
		a := &app{stdout: io.Discard, stderr: stderr, newServer: func(cfg *config.Config, _ *slog.Logger) (server, error) {
			return &fakeServer{cfg: cfg, run: func(context.Context) error { return ended }}, nil
		}}
		return a.run(ctx, []string{"serve", "--tag", "A", "--data-dir", t.TempDir(), "--stay-down"}, strings.NewReader(""))
	}
	for want, ended := range map[int]error{
		exitUsage:   config.ErrUnguarded,
		exitRefused: fmt.Errorf("cluster: %w", member.ErrRemoved),
		exitDamaged: &node.DataLossError{Dir: "d", Tag: "A", Err: errors.New("torn")},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		told, stderr := io.Pipe()
		code := make(chan int, 1)
		go func() {
			code <- serve(ctx, ended, stderr)
			stderr.Close()
		}()
		lines := bufio.NewScanner(told)
		if !lines.Scan() || !strings.Contains(lines.Text(), "stays down") || !strings.Contains(lines.Text(), ended.Error()[:8]) {
			t.Errorf("%v: it said %q", ended, lines.Text())
		}
		select {
		case code := <-code:
			t.Errorf("%v: it ended with %d", ended, code)
		default:
		}
		cancel()
		for lines.Scan() { // The error, once more.
		}
		if code := <-code; code != want {
			t.Errorf("%v: exit code %d, want %d", ended, code, want)
		}
	}
	if code := serve(t.Context(), errors.New("the disk stalls"), io.Discard); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
}

func TestServeThatCannotStart(t *testing.T) {
	newServer := func(*config.Config, *slog.Logger) (server, error) { return nil, errors.New("the port is taken") }
	got := commandWith(t.Context(), nil, newServer, "serve", "--tag", "A", "--data-dir", t.TempDir())
	if got != (outcome{code: exitFailed, stderr: "idnode: the port is taken\n"}) {
		t.Errorf("%+v", got)
	}
}

// TestServeSaysWhatToDo where the system's own words do not.
func TestServeSaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	newServer := func(*config.Config, *slog.Logger) (server, error) {
		_, err := net.Listen("tcp", taken.Addr().String())
		return nil, err
	}
	got := commandWith(t.Context(), nil, newServer, "serve", "--tag", "A", "--data-dir", t.TempDir())
	if got.code != exitFailed || !strings.Contains(got.stderr, "another program uses this address") {
		t.Errorf("%+v", got)
	}
}

// TestServeHelp shows every flag once, under a heading.
func TestServeHelp(t *testing.T) {
	help := command(t, "serve", "--help").stdout
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if n := strings.Count(help, "      --"+f.Name+" "); n != 1 {
			t.Errorf("--%s is shown %d times", f.Name, n)
		}
	})
	for _, want := range []string{"\nCluster:\n", "\nStorage:\n", "--print-config", "(default 250ms)", "Examples:"} {
		if !strings.Contains(help, want) {
			t.Errorf("%q is missing in:\n%s", want, help)
		}
	}
}

func TestServeWrongUsage(t *testing.T) {
	tests := []struct {
		env  []string
		line string
		want string
	}{
		{nil, "serve --tag a", "tag"},
		{[]string{"IDNODE_TAGG=A"}, "serve", "IDNODE_TAGG"},
		{nil, "serve --config /does/not/exist", "/does/not/exist"},
		{nil, "serve now", "usage: idnode serve"},
		{nil, "serve --tag A --data-dir d --log-level loud", "log"},
		{nil, "serve --log-level loud --tag A", "config: data-dir: no folder is given; log-level:"},
	}
	for _, tt := range tests {
		got := commandEnv(t, tt.env, strings.Fields(tt.line)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, tt.want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", tt.line, got)
		}
	}
}

func TestPrintConfig(t *testing.T) {
	got := commandEnv(t, []string{"IDNODE_CALL_TIMEOUT=1500ms"}, "serve", "--tag", "A", "--data-dir", "d", "--print-config")
	if got.code != exitOK || !strings.Contains(got.stdout, "call-timeout: 1.5s\n") || !strings.Contains(got.stdout, "tag: A\n") {
		t.Errorf("%+v", got)
	}
}

// TestServeTellsItsManager runs a real node: it says when it serves, that it
// lives, and when it stops.
func TestServeTellsItsManager(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "notify-") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "socket")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	hear := func(line string) {
		t.Helper()
		buffer := make([]byte, 4096)
		if err := manager.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		for {
			n, err := manager.Read(buffer)
			if err != nil {
				t.Fatalf("no message with the line %q: %v", line, err)
			}
			if slices.Contains(strings.Split(string(buffer[:n]), "\n"), line) {
				return
			}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan outcome, 1)
	port, err := strconv.Atoi(freeBasePort(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		env := []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=20000"}
		done <- commandWith(ctx, env, newNode, "serve", "--tag", "A", "--single-node", "--data-dir", t.TempDir(),
			"--grpc", loopback(port), "--raft", loopback(port+1), "--http", loopback(port+2))
	}()
	for _, line := range []string{"STATUS=waiting for the cluster", "READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		hear(line)
	}
	stop()
	hear("STOPPING=1")
	if got := <-done; got.code != exitOK {
		t.Errorf("%+v", got)
	}
}
