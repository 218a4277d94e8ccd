package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
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
		}, &config.Config{}, slog.New(slog.NewTextHandler(io.Discard, nil)), nil, nil)
		if took := time.Since(begin); took != stopLimit || exitCode(err) != exitFailed {
			t.Errorf("after %s: %v", took, err)
		}
		close(hangs)
	})
}
