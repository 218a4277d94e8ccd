//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
)

// longest is how long a command may take to end on a busy machine.
const longest = 30 * time.Second

// TestInterruptEndsACommandWhoseFileBlocks has each command that reads a file read one that never
// ends, and interrupts it there.
func TestInterruptEndsACommandWhoseFileBlocks(t *testing.T) {
	for _, line := range []string{
		"import PIPE", "import PIPE --form csv", "cluster set-roles PIPE", "series reconcile books - --file PIPE", "audit verify PIPE",
		"backup inspect PIPE", "restore PIPE", "export - --from PIPE --form csv", "serve --config PIPE",
	} {
		t.Run(line, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var stderr bytes.Buffer
			code := make(chan int, 1)
			go func() {
				args := strings.Fields(strings.ReplaceAll(line, "PIPE", path))
				code <- run(ctx, args, strings.NewReader(""), &bytes.Buffer{}, &stderr, nil)
			}()
			defer writerOf(t, path).Close()
			interrupt()
			select {
			case got := <-code:
				if got != exitFailed || !strings.Contains(stderr.String(), "interrupted") {
					t.Errorf("exit code %d, %s", got, &stderr)
				}
			case <-time.After(longest):
				t.Fatal("it goes on")
			}
		})
	}
}

// writerOf returns the other end of a pipe, once somebody opens it for reading.
func writerOf(t *testing.T, path string) *os.File {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < longest; time.Sleep(time.Millisecond) {
		if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			return w
		}
	}
	t.Fatal("nobody reads it")
	return nil
}

// TestInterruptEndsAnOpen interrupts an open for which there is no writer.
func TestInterruptEndsAnOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, err := openInput(ctx, path, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = writerOf(t, path).Close() // So that the open ends.
}

// endsIn is an output that ends a context after so many bytes, as Ctrl-C does.
type endsIn struct {
	bytes.Buffer
	left int
	end  context.CancelFunc
}

func (w *endsIn) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left <= 0 {
		w.end()
	}
	return w.Buffer.Write(p)
}

// TestInterruptCutsNoID: a cut id at the end of the output would be another id.
func TestInterruptCutsNoID(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	w := &endsIn{left: 300_000, end: end}
	p, err := newPrinter(w, "text")
	if err != nil {
		t.Fatal(err)
	}
	p.blocks(ctx, []*idnodev1.IdBlock{{Prefix: "users/", First: 1, Last: 1_000_000}})
	if err := p.flush(); !errors.Is(err, context.Canceled) || w.Len() < 300_000 {
		t.Errorf("%d bytes, %v", w.Len(), err)
	}
	if !strings.HasSuffix(w.String(), "\n") {
		t.Errorf("the output ends with %q", w.String()[w.Len()-20:])
	}
}
