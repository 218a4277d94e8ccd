package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/internal/logqueue"
	"github.com/idnode/idnode/server/config"
)

// TestWhatIsLeftOutIsInTheLogsFormat: programs read it.
func TestWhatIsLeftOutIsInTheLogsFormat(t *testing.T) {
	var out bytes.Buffer
	a := &app{stderr: &out}
	log, err := a.nodeLogger("error", "json")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = a.log.Write(bytes.Repeat([]byte("\n"), logqueue.MaxBytes+1))
	log.Error("the next")
	a.log.Close()
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, fmt.Sprintf(`"lines_left_out":%d}`, logqueue.MaxBytes+1)) {
		t.Error(got)
	}
}

// TestHangupChangesTheLogLevel to that of the settings' file; one that cannot be read changes nothing.
func TestHangupChangesTheLogLevel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "idnode.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tag: A\ndata-dir: " + t.TempDir())
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reloaded, debug := make(chan struct{}), make(chan func() bool, 1)
	ended := make(chan outcome, 1)
	go func() {
		ended <- commandWith(ctx, nil, func(cfg *config.Config, log *slog.Logger) (server, error) {
			debug <- func() bool { return log.Enabled(ctx, slog.LevelDebug) }
			return &fakeServer{cfg: cfg, reloaded: reloaded}, nil
		}, "serve", "--config", file)
	}()
	isDebug := <-debug
	for _, tt := range []struct {
		text string
		want bool
	}{{"log-level: debug", true}, {"log-level: loud", true}, {"log-level: warn", false}} {
		write("tag: A\ndata-dir: d\n" + tt.text)
		for range 2 { // The second one comes when the first one is done.
			if err := self.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			<-reloaded
		}
		if got := isDebug(); got != tt.want {
			t.Errorf("after %q debug is %t", tt.text, got)
		}
	}
	cancel()
	if got := <-ended; got.code != exitOK || !strings.Contains(got.stderr, "the log level stays") {
		t.Errorf("%+v", got)
	}
}

// TestHangup has a node reload, and does not end it.
func TestHangup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	reloaded := make(chan struct{})
	ended := make(chan outcome, 1)
	go func() {
		ended <- commandWith(ctx, nil, func(cfg *config.Config, _ *slog.Logger) (server, error) {
			return &fakeServer{cfg: cfg, reloaded: reloaded}, self.Signal(syscall.SIGHUP)
		}, "serve", "--tag", "A", "--data-dir", t.TempDir())
	}()
	for again := range 2 {
		select {
		case <-reloaded:
		case got := <-ended:
			t.Fatalf("it ended: %+v", got)
		}
		if again == 0 {
			if err := self.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel()
	if got := <-ended; got.code != exitOK {
		t.Errorf("%+v", got)
	}
}

// TestAStopIsBounded as a whole, whatever hangs.
func TestAStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		hangs := make(chan struct{})
		begin := time.Now()
		cancel()
		err := runServer(ctx, func(cfg *config.Config, _ *slog.Logger) (server, error) {
			return &fakeServer{cfg: cfg, run: func(context.Context) error { <-hangs; return nil }}, nil
		}, &config.Config{}, slog.New(slog.NewTextHandler(io.Discard, nil)), nil, nil, nil)
		if took := time.Since(begin); took != stopLimit || exitCode(err) != exitFailed {
			t.Errorf("after %s: %v", took, err)
		}
		close(hangs)
	})
}

func TestCalmLeavesOutExpectedWarnings(t *testing.T) {
	var out bytes.Buffer
	base := newLogger(&out, slog.LevelWarn, "text")
	h := newCalm(base.Handler())
	// Loggers made before and after a change share it.
	early := slog.New(h).With("node", "A")
	early.Warn("starting")
	early.Error("broken")
	h.expected.Store(false)
	early.Warn("serving")
	slog.New(h).WithGroup("raft").Warn("serving too")
	early.Info("below the level")
	early.With("part", "raft").Error("the library's")
	h.expected.Store(true)
	early.Warn("stopping")
	text := out.String()
	for _, want := range []string{"broken", "msg=serving node=A", "serving too"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if n := strings.Count(text, "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}
