package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/server/config"
)

// reader is the reader of a log. A write waits for a value in reads, until it is closed, and
// fails while fails is set.
type reader struct {
	reads chan struct{}
	fails error
	lines bytes.Buffer
}

func (r *reader) Write(lines []byte) (int, error) {
	<-r.reads
	if r.fails != nil {
		return 0, r.fails
	}
	return r.lines.Write(lines)
}

// TestALogThatNobodyReadsStopsNothing: lines are left out and counted, and those that are
// written are whole and in order.
func TestALogThatNobodyReadsStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{reads: make(chan struct{})}
		var told []int
		q := newLogQueue(r, func(leftOut int) error {
			told = append(told, leftOut)
			return nil
		})
		line := func(n int) string { return fmt.Sprintf("%d%s\n", n, strings.Repeat(".", 1000)) }
		const all = 3 * maxQueuedLog / 1000
		for n := range all {
			if n == 1 {
				synctest.Wait() // The first line is on its way, and nobody takes it.
			}
			_, _ = q.Write([]byte(line(n)))
		}
		close(r.reads)
		q.close()
		written := strings.SplitAfter(strings.TrimSuffix(r.lines.String(), "\n"), "\n")
		if len(written) < maxQueuedLog/1100 || len(written) > maxQueuedLog/900 || !slices.Equal(told, []int{all - len(written)}) {
			t.Errorf("of %d lines %d were written, and %v told", all, len(written), told)
		}
		for n, got := range written {
			if strings.TrimSuffix(line(n), "\n") != strings.TrimSuffix(got, "\n") {
				t.Fatalf("line %d is %q", n, got)
			}
		}
		_, _ = q.Write([]byte("after the end\n"))
	})
}

// TestLinesThatCannotBeWrittenAreCounted, as those on a full disk, and told of when there is
// room again.
func TestLinesThatCannotBeWrittenAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{reads: make(chan struct{}), fails: errors.New("no space left")}
		close(r.reads)
		var told []int
		q := newLogQueue(r, func(leftOut int) error {
			told = append(told, leftOut)
			return nil
		})
		for range 3 {
			_, _ = q.Write([]byte("lost\n"))
			synctest.Wait()
		}
		r.fails = nil
		_, _ = q.Write([]byte("room\n"))
		q.close()
		if got := r.lines.String(); got != "room\n" || !slices.Equal(told, []int{3}) {
			t.Errorf("%q was written, and %v told", got, told)
		}
	})
}

// TestTheEndDoesNotWaitForTheLogsReader for longer than its limit.
func TestTheEndDoesNotWaitForTheLogsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{reads: make(chan struct{})}
		q := newLogQueue(r, func(int) error { return nil })
		_, _ = q.Write([]byte("nobody reads this\n"))
		begin := time.Now()
		q.close()
		if took := time.Since(begin); took != logFlushLimit {
			t.Errorf("%s", took)
		}
		close(r.reads)
	})
}

// TestWhatIsLeftOutIsInTheLogsFormat: programs read it.
func TestWhatIsLeftOutIsInTheLogsFormat(t *testing.T) {
	var out bytes.Buffer
	a := &app{stderr: &out}
	log, err := a.nodeLogger("error", "json")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = a.log.Write(bytes.Repeat([]byte("\n"), maxQueuedLog+1))
	log.Error("the next")
	a.log.close()
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, fmt.Sprintf(`"lines_left_out":%d}`, maxQueuedLog+1)) {
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
