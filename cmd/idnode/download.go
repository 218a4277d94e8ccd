package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/bytesize"
	"github.com/idnode/idnode/transfer"
)

func (s *clusterClient) backupInto(ctx context.Context) transfer.Write {
	return func(file *os.File) error {
		return s.download(ctx, file, func(error) error {
			_, err := file.Seek(0, io.SeekStart)
			return errors.Join(err, file.Truncate(0))
		})
	}
}

// streamBackup writes a backup to the standard output as it comes, and checks it on the way. What was
// written cannot be taken back: another endpoint is asked only as long as nothing was.
func streamBackup(ctx context.Context, s *clusterClient, out io.Writer) error {
	unchecked, tee := io.Pipe()
	checked := make(chan error, 1)
	go func() {
		err := transfer.Check(unchecked)
		_ = unchecked.CloseWithError(err) // It ends the writer, and never fails.
		checked <- err
	}()
	to := &backup.Counted{Writer: io.MultiWriter(out, tee)}
	err := s.download(ctx, to, func(failed error) error {
		if to.Bytes > 0 {
			return failed
		}
		return nil
	})
	_ = tee.CloseWithError(err) // It ends the check, and never fails.
	if wrong := <-checked; err == nil {
		return wrong
	}
	return err
}

// download writes a backup, from the first endpoint that gives all of it. Before it asks another
// endpoint, rewind removes what was written, or returns why it cannot.
func (s *clusterClient) download(ctx context.Context, to io.Writer, rewind func(failed error) error) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	shown := newProgress(s.stderr)
	defer shown.end()
	failed := &callError{verbose: s.verbose}
	for _, endpoint := range s.Endpoints {
		err := s.downloadFrom(ctx, endpoint, to, shown)
		if err == nil {
			return nil
		}
		if is[*unwrittenError](err) {
			return err // Another endpoint would not help.
		}
		failed.failedAt(endpoint, err)
		if effectOf(err) == effectRefused || ctx.Err() != nil {
			return failed
		}
		if err := rewind(failed); err != nil {
			return err
		}
	}
	return failed
}

// unwrittenError is a backup that was received and could not be written.
type unwrittenError struct{ error }

func (e *unwrittenError) Error() string { return "cannot write the backup: " + e.error.Error() }
func (e *unwrittenError) Unwrap() error { return e.error }

// downloadFrom writes what a node sends. The timeout is for each piece: the whole may take long.
func (s *clusterClient) downloadFrom(ctx context.Context, endpoint string, to io.Writer, shown *progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(s.timeout, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()
	var stream grpc.ServerStreamingClient[idnodev1.BackupResponse]
	conn, err := s.connect(ctx, endpoint)
	if err == nil {
		stream, err = idnodev1.NewAdminServiceClient(conn).Backup(ctx, &idnodev1.BackupRequest{Consistency: s.consistency})
	}
	size := bytesize.Size(0)
	for err == nil {
		var piece *idnodev1.BackupResponse
		if piece, err = stream.Recv(); err != nil {
			break
		}
		if _, err := to.Write(piece.GetData()); err != nil {
			return &unwrittenError{err}
		}
		size += bytesize.Size(len(piece.GetData()))
		silence.Reset(s.timeout)
		shown.say("%s received", size.Rounded())
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fmt.Errorf("%s fell silent after %s: %w", endpoint, size.Rounded(), context.DeadlineExceeded)
	}
	return err
}

const progressPause = 2 * time.Second

// progress says on stderr how far long work has come: on a terminal in one line that changes, else a
// line at a time, so that it reads well in a log too. Short work says nothing.
type progress struct {
	w     io.Writer
	pause time.Duration
	next  time.Time
	// line is the format of a line, and clear takes back one of a terminal.
	line, clear string
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, pause: progressPause, line: "%s\n"}
	if isTerminal(w) {
		p.pause, p.line, p.clear = progressPause/10, "\r%-70s", "\r"+strings.Repeat(" ", 70)+"\r"
	}
	p.next = time.Now().Add(p.pause)
	return p
}

// say prints a line, unless the previous line is too new.
func (p *progress) say(format string, args ...any) {
	if now := time.Now(); now.After(p.next) {
		fmt.Fprintf(p.w, p.line, fmt.Sprintf(format, args...))
		p.next = now.Add(p.pause)
	}
}

func (p *progress) end() { fmt.Fprint(p.w, p.clear) }

func (p *progress) merged(all int64) func(names int64) {
	const width = 20
	return func(names int64) {
		full := int(width * names / max(all, 1))
		p.say("[%s%s] %d of %d names merged", strings.Repeat("#", full), strings.Repeat(".", width-full), names, all)
	}
}
