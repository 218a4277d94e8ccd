package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/internal/disklock"
	"github.com/idnode/idnode/internal/syncdir"
)

const (
	// hangs is how long a write takes at least before Err counts it as one that hangs.
	hangs = time.Second
	// closeLimit bounds Close.
	closeLimit = time.Second
)

// file is what a Log needs of an *os.File.
type file interface {
	io.ReadWriteCloser
	Sync() error
	Truncate(size int64) error
	Stat() (os.FileInfo, error)
}

// Log is an open audit log. It is safe for concurrent use. A nil Log records nothing.
//
// Before each line the Log looks whether the file is still the one at its path, with
// the length that it had. After a rename or a removal the chain goes on in a new
// file, and after a truncation to nothing in the same one: no line goes where nobody
// finds it, and programs that rotate logs may do it in any of their ways.
type Log struct {
	path   string
	logger *slog.Logger
	now    func() time.Time
	// turn is held while somebody works on the file. Work that hangs keeps it.
	turn disklock.Mutex
	// reading is held by Tail.
	reading disklock.Mutex
	// began is when the present work began, or nil, and failed is the error of the
	// work before it, or nil.
	began  atomic.Pointer[time.Time]
	failed atomic.Pointer[error]

	// Only who has the turn uses these.

	file   file
	closed bool
	// records is how many lines the chain has, and head the hash of the last one.
	records uint64
	head    string
	// end is where the last line ends in the file: 0 if it has none.
	end int64
	// why is what an earlier file ended for.
	why string
}

var errClosed = errors.New("closed")

// Open opens the log in a file and checks it; it makes the file if it is not
// there. It holds the file for itself until Close. A line that a crash left
// unfinished is cut off, which is recorded. The error wraps ErrBroken for a file
// that was changed. logger hears of files that come to be others; it may be nil.
func Open(path string, logger *slog.Logger) (*Log, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{path: path, logger: logger, now: time.Now, turn: disklock.New(), reading: disklock.New()}
	opened, found, err := open(path)
	if err != nil {
		return nil, err
	}
	l.file, l.records, l.head, l.end = opened, found.Records, found.Head, found.bytes
	if err := l.mend(found.Torn); err != nil {
		return nil, errors.Join(fmt.Errorf("audit log %s: %w", path, err), opened.Close())
	}
	return l, nil
}

// open opens a file for this process alone, and checks what is in it.
func open(path string) (*os.File, Found, error) {
	_, missing := os.Stat(path)
	opened, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, Found{}, fmt.Errorf("audit log: %w", err)
	}
	var found Found
	if errors.Is(missing, fs.ErrNotExist) {
		err = syncdir.Sync(filepath.Dir(path))
	}
	if err == nil {
		if err = lock(opened); err != nil {
			err = fmt.Errorf("another process has it open: %w", err)
		}
	}
	if err == nil {
		found, err = Verify(opened)
	}
	if err != nil {
		return nil, found, errors.Join(fmt.Errorf("audit log %s: %w", path, err), opened.Close())
	}
	return opened, found, nil
}

// Write appends a record, and returns when it is on disk. After an error the next
// Write tries again: what is left of a line that failed is cut off then. When ctx ends
// first, the record may still be written.
func (l *Log) Write(ctx context.Context, r Record) error {
	return l.work(ctx, func() error {
		if err := l.follow(); err != nil {
			return err
		}
		return l.add(r)
	})
}

// Reopen goes on in the file that is at the path now, as the next Write does too.
func (l *Log) Reopen(ctx context.Context) error { return l.work(ctx, l.follow) }

// Close closes the file, unless the disk hangs.
func (l *Log) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	return l.work(ctx, func() error {
		l.closed = true
		return l.file.Close()
	})
}

// Err says why nothing can be recorded, as far as is known: the newest write has
// failed, or hangs. It does not wait.
func (l *Log) Err() error {
	if l == nil {
		return nil
	}
	if began := l.began.Load(); began != nil && l.now().Sub(*began) >= hangs {
		return fmt.Errorf("audit log: a write takes longer than %s", hangs)
	}
	if failed := l.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// work does something with the file, in its turn; see inTurn.
func (l *Log) work(ctx context.Context, do func() error) error {
	if l == nil {
		return nil
	}
	return inTurn(ctx, l.turn, func() error { return l.do(do) })
}

// inTurn does something that waits for the disk, with a lock held. When ctx ends first, it returns, and
// what was begun goes on: a write to a disk that hangs cannot be taken back.
func inTurn(ctx context.Context, turn disklock.Mutex, do func() error) error {
	if err := turn.LockContext(ctx); err != nil {
		return fmt.Errorf("audit log: no turn at the file: %w", err)
	}
	done := make(chan error, 1)
	go func() {
		defer turn.Unlock()
		done <- do()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("audit log: the disk has not answered: %w", ctx.Err())
	}
}

func (l *Log) do(work func() error) error {
	if l.closed {
		return errClosed
	}
	l.began.Store(new(l.now()))
	defer l.began.Store(nil)
	err := work()
	if err == nil {
		if l.failed.Swap(nil) != nil {
			l.logger.Info("the audit log can be written again", "file", l.path)
		}
		return nil
	}
	err = fmt.Errorf("audit log: %w", err)
	if l.failed.Swap(&err) == nil {
		l.logger.Error("the audit log cannot be written: calls that must be recorded are refused", "file", l.path, "error", err)
	}
	return err
}

// follow makes the file ready for the next line: it is the one at the path, and ends
// with the last line.
func (l *Log) follow() error {
	have, err := l.file.Stat()
	if err != nil {
		return err
	}
	at, err := os.Stat(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	size := have.Size()
	switch {
	case err != nil, !os.SameFile(at, have):
		if size, err = l.move(size); err != nil {
			return err
		}
	case size == 0 && l.end > 0:
		l.logger.Warn("the audit log was emptied: its chain goes on at the beginning of the file", "file", l.path, "lines", l.records)
		l.end, l.why = 0, "the file was emptied"
	case size < l.end:
		return fmt.Errorf("%w: %s was cut from %d bytes to %d: move it away, and the chain goes on in another", ErrBroken, l.path, l.end, size)
	}
	return l.mend(size - l.end)
}

// move goes on in the file that is at the path now, and returns its size. That file is
// empty, or ends with the last line.
func (l *Log) move(oldSize int64) (size int64, err error) {
	opened, found, err := open(l.path)
	if err != nil {
		return 0, err
	}
	if found.Records > 0 && (found.Records != l.records || found.Head != l.head) {
		return 0, errors.Join(fmt.Errorf("%w: %s is another log: move it away, and the chain goes on in another", ErrBroken,
			l.path), opened.Close())
	}
	if oldSize > l.end {
		err = l.file.Truncate(l.end) // Of a line that failed; the file may have another name now.
	}
	if err = errors.Join(err, l.file.Close()); err != nil {
		l.logger.Warn("the end of the audit log before may have a part of a line", "error", err)
	}
	l.logger.Warn("the audit log was moved away or removed: its chain goes on in another file", "file", l.path, "lines", l.records)
	l.file, l.end, l.why = opened, found.bytes, "the file was moved away or removed"
	return found.bytes + found.Torn, nil
}

// mend cuts off what follows the last line, and begins a file that has none.
func (l *Log) mend(torn int64) error {
	if torn > 0 {
		if err := l.file.Truncate(l.end); err != nil {
			return err
		}
	}
	if l.end == 0 && l.records > 0 {
		if err := l.add(Record{Event: EventContinued, Outcome: OutcomeDone, After: l.why}); err != nil {
			return err
		}
	}
	if torn > 0 {
		return l.add(Record{Event: EventTorn, Outcome: OutcomeDone, Before: torn})
	}
	return nil
}

// add appends a line. After an error the file may have a part of it.
func (l *Log) add(r Record) error {
	text, hash, err := encode(line{Seq: l.records + 1, Time: l.now().UTC(), Prev: l.head, Record: r})
	if err != nil {
		return err
	}
	if len(text) > maxLine {
		return fmt.Errorf("a line of %d bytes, more than %d", len(text), maxLine)
	}
	if _, err = l.file.Write(text); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.records, l.head, l.end = l.records+1, hash, l.end+int64(len(text))
	return nil
}
