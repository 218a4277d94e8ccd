package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/server/config"
)

// freeBasePort returns a base port with room for nodes.
func freeBasePort(t *testing.T, nodes int) string {
	t.Helper()
	base, err := freeport.Base(10 * nodes)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(base)
}

// devHandler answers as the node called tag would.
func devHandler(tag string) func(proto.Message) (proto.Message, error) {
	return func(req proto.Message) (proto.Message, error) {
		switch req := req.(type) {
		case *idnodev1.GenerateRequest:
			if req.GetDatabase() != "samples" {
				return nil, errors.New("a sample is of database " + req.GetDatabase())
			}
			ids := map[string]string{"": "9f0c", "users/": "users/0000000000000000001-" + tag, "users|": "users/1"}
			return &idnodev1.GenerateResponse{Ids: []string{ids[req.GetTemplate()]}}, nil
		case *idnodev1.NextRangeRequest:
			if req.GetDatabase() != "samples" {
				return nil, errors.New("a range is of database " + req.GetDatabase())
			}
			return &idnodev1.NextRangeResponse{Prefix: "users/", Low: 1, High: 32, NodeTag: tag}, nil
		default:
			return &idnodev1.ClaimResponse{}, nil
		}
	}
}

// fakeServers makes servers for dev whose calls are answered by devHandler.
// change may alter one before it is used.
func fakeServers(t *testing.T, change func(tag string, s *fakeServer)) func(*config.Config, *slog.Logger) (server, error) {
	return func(cfg *config.Config, _ *slog.Logger) (server, error) {
		s := &fakeServer{cfg: cfg, node: newFakeNode(t, devHandler(cfg.Tag))}
		s.node.applied = 1
		if change != nil {
			change(cfg.Tag, s)
		}
		return s, nil
	}
}

// stopWhenReady ends the context when everything was printed.
type stopWhenReady struct {
	strings.Builder
	stop func()
}

func (w *stopWhenReady) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "ready\n") {
		defer w.stop()
	}
	return w.Builder.Write(p)
}

func TestDev(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out := &stopWhenReady{stop: stop}
	var stderr strings.Builder
	a := &app{stdout: out, stderr: &stderr, newServer: fakeServers(t, nil)}
	code := a.run(ctx, []string{"dev", "--nodes", "2", "--base-port", freeBasePort(t, 2)}, strings.NewReader(""))
	text := out.String()
	for _, want := range []string{
		"node A  grpc 127.0.0.1:", "node B  grpc 127.0.0.1:", "ids from A\n", "ids from B\n",
		"  GUID         9f0c\n", "  server-side  users/0000000000000000001-B\n", "  identity     users/1\n",
		"  HiLo range   users/1-A to users/32-A\n", "  semantic     users/a@example.org (claimed)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if code != exitOK || !strings.Contains(text, "\npage: http://127.0.0.1:") || !strings.HasSuffix(text, "\nready\n") ||
		stderr.String() != "" {
		t.Errorf("code %d, printed %q and %q", code, text, stderr.String())
	}
	dir, _, _ := strings.Cut(strings.TrimPrefix(text, "data in "), "\n")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder %q is still there: %v", dir, err)
	}
}

// TestDevConsole has what can be said to dev, and its answers. Node C can only be started once.
func TestDevConsole(t *testing.T) {
	fake, made := fakeServers(t, nil), 0
	newServer := func(cfg *config.Config, log *slog.Logger) (server, error) {
		if made++; made > 4 {
			return nil, errors.New("the disk is gone")
		}
		return fake(cfg, log)
	}
	in, say := io.Pipe()
	out := newTranscript()
	ctx, stop := context.WithCancel(t.Context())
	code := make(chan int)
	go func() {
		a := &app{stdout: out, stderr: io.Discard, newServer: newServer}
		code <- a.run(ctx, []string{"dev", "--base-port", freeBasePort(t, 3)}, in)
	}()
	out.await(t, "ready\n")
	for _, tt := range []struct{ line, want string }{
		{"help", "kill A: "},
		{"kill", `there is no node ""`},
		{"kill Z", `there is no node "Z"`},
		{"start B", "B runs already"},
		{"kill B", "B is killed; ids go on"},
		{"kill b", "B does not run"},
		{" start  b ", "B starts\nB is ready"},
		{"kill C", "C is killed; ids go on"},
		{"kill B", "B is killed; identities wait for a majority"},
		{"start C", "C does not start: the disk is gone"},
	} {
		fmt.Fprintln(say, tt.line)
		out.await(t, "\n"+tt.want)
		out.forget()
	}
	stop()
	if got := <-code; got != exitOK {
		t.Errorf("code %d", got)
	}
}

// transcript is an output that can be waited for.
type transcript struct {
	mu    sync.Mutex
	text  string
	grown chan struct{}
}

func newTranscript() *transcript { return &transcript{grown: make(chan struct{}, 1)} }

func (w *transcript) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += string(p)
	select {
	case w.grown <- struct{}{}:
	default:
	}
	return len(p), nil
}

// await returns the text once it has want.
func (w *transcript) await(t *testing.T, want string) string {
	t.Helper()
	for timeout := time.After(time.Minute); ; {
		w.mu.Lock()
		text := w.text
		w.mu.Unlock()
		if strings.Contains(text, want) {
			return text
		}
		select {
		case <-w.grown:
		case <-timeout:
			t.Fatalf("%q is missing in:\n%s", want, text)
		}
	}
}

// forget makes await wait for what comes from now on.
func (w *transcript) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = "\n"
}

// TestDevEnds has the ways in which dev ends before anybody stops it.
func TestDevEnds(t *testing.T) {
	tests := []struct {
		name   string
		change func(tag string, s *fakeServer)
		code   int
		want   string
	}{
		{"a node fails", func(tag string, s *fakeServer) {
			if tag == "B" {
				s.run = func(context.Context) error { return errors.New("the disk is gone") }
			}
		}, exitFailed, "node B: the disk is gone"},
		{"a node just ends", func(tag string, s *fakeServer) {
			if tag == "B" {
				s.run = func(context.Context) error { return nil }
			}
		}, exitFailed, "node B: ended by itself"},
		{"never ready", func(_ string, s *fakeServer) { s.ready = context.DeadlineExceeded }, exitUnavailable, "node A did not get ready"},
		{"an id is refused", func(tag string, s *fakeServer) {
			s.node.handle = refuse(failure(t, codes.ResourceExhausted, "QUOTA", "too many identities"))
		}, exitFailed, "QUOTA: too many identities"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			got := commandWith(ctx, nil, fakeServers(t, tt.change), "dev", "--nodes", "2", "--base-port", freeBasePort(t, 2))
			if got.code != tt.code || !strings.Contains(got.stderr, tt.want) || ctx.Err() != nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestDevClosesWhatItMade when a later node cannot be made.
func TestDevClosesWhatItMade(t *testing.T) {
	closed := false
	fake := fakeServers(t, func(_ string, s *fakeServer) {
		s.run = func(ctx context.Context) error {
			closed = ctx.Err() != nil
			return nil
		}
	})
	newServer := func(cfg *config.Config, log *slog.Logger) (server, error) {
		if cfg.Tag == "B" {
			return nil, errors.New("its data belongs to another node")
		}
		return fake(cfg, log)
	}
	got := commandWith(t.Context(), nil, newServer, "dev", "--nodes", "2", "--base-port", freeBasePort(t, 2))
	want := "idnode: node B: its data belongs to another node\n"
	if got != (outcome{code: exitFailed, stderr: want}) || !closed {
		t.Errorf("closed %t, %+v", closed, got)
	}
}

func TestDevPortTaken(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	_, port, _ := net.SplitHostPort(lis.Addr().String())
	if p, _ := strconv.Atoi(port); p > 65500 {
		t.Skip("the port leaves no room")
	}
	got := commandWith(t.Context(), nil, fakeServers(t, nil), "dev", "--base-port", port)
	if got.code != exitFailed || !strings.Contains(got.stderr, "node A cannot listen on 127.0.0.1:"+port) ||
		!strings.Contains(got.stderr, "--base-port") {
		t.Errorf("%+v", got)
	}
}

func TestDevWrongUsage(t *testing.T) {
	kept := t.TempDir()
	for _, tag := range []string{"A", "B"} {
		if err := os.Mkdir(filepath.Join(kept, tag), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		line string
		want string
	}{
		{"dev --nodes 0", "--nodes must be 1 to 9"},
		{"dev --nodes 10", "--nodes must be 1 to 9"},
		{"dev --base-port 65530", "--base-port must be 1 to 65513 with --nodes 3"},
		{"dev --log-level loud", "the log level must be"},
		{"dev --data-dir " + kept, "holds a cluster of 2 nodes: use --nodes 2"},
	}
	for _, tt := range tests {
		got := commandWith(t.Context(), nil, fakeServers(t, nil), strings.Fields(tt.line)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%s: %+v", tt.line, got)
		}
	}
}
