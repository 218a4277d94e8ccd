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
	// hangs is the time after which Err reports a write as hanging.
	hangs = time.Second
	// closeLimit bounds Close.
	closeLimit = time.Second
)

// file is the part of *os.File that a Log needs.
type file interface {
	io.ReadWriteCloser
	Sync() error
	Truncate(size int64) error
	Stat() (os.FileInfo, error)
}

// Log is an open audit log. It is safe for concurrent use. A nil Log records nothing.
//
// Before each line the Log checks that the file is still the one at its path, and has its expected
// length. After a rename or a removal the chain continues in a new file, and after a truncation to
// nothing in the same file: no line is written to a file that nobody finds, and any method of log
// rotation works.
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
	// records is the number of lines in the chain, and head the hash of the last line.
	records uint64
	head    string
	// end is the offset of the last line's end in the file: 0 without lines.
	end int64
	// why is the reason why an earlier file ended.
	why string
}

var errClosed = errors.New("closed")

// Open opens the log in a file and checks it; it makes the file if it is not
// there. It holds the file for itself until Close. A line that a crash left
// unfinished is cut off, which is recorded. The error wraps ErrBroken for a file
// that was changed. logger is warned when the file was replaced; it may be nil.
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

// open opens a file for this process alone, and checks its content.
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

// Write appends a record, and returns when it is on disk. After an error the next Write tries
// again, and first cuts off the rest of the failed line. When ctx ends first, the record may still
// be written.
func (l *Log) Write(ctx context.Context, r Record) error {
	return l.work(ctx, func() error {
		if err := l.follow(); err != nil {
			return err
		}
		return l.add(r)
	})
}

// Reopen continues in the file that is at the path now, as the next Write does too.
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

// Err returns the reason why nothing can be recorded, as far as is known: the newest write has
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

// inTurn runs do, which waits for the disk, with a lock held. When ctx ends first, it returns while do
// continues: a write to a hanging disk cannot be cancelled.
func inTurn(ctx context.Context, turn disklock.Mutex, do func() error) error {
	if err := turn.LockContext(ctx); err != nil {
		return fmt.Errorf("audit log: earlier writes have not ended: %w", err)
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

// follow prepares the file for the next line: afterwards it is the file at the path, and ends with
// the last line.
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
		l.logger.Warn("the audit log was emptied: its chain continues at the beginning of the file", "file", l.path, "lines", l.records)
		l.end, l.why = 0, "the file was emptied"
	case size < l.end:
		return fmt.Errorf("%w: %s was cut from %d bytes to %d: move it away, and the chain continues in a new file", ErrBroken,
			l.path, l.end, size)
	}
	return l.mend(size - l.end)
}

// move continues in the file that is at the path now, and returns its size. That file is empty, or
// ends with the last line.
func (l *Log) move(oldSize int64) (size int64, err error) {
	opened, found, err := open(l.path)
	if err != nil {
		return 0, err
	}
	if found.Records > 0 && (found.Records != l.records || found.Head != l.head) {
		return 0, errors.Join(fmt.Errorf("%w: %s is another log: move it away, and the chain continues in a new file", ErrBroken,
			l.path), opened.Close())
	}
	if oldSize > l.end {
		err = l.file.Truncate(l.end) // Of a line that failed; the file may have another name now.
	}
	if err = errors.Join(err, l.file.Close()); err != nil {
		l.logger.Warn("the previous audit log may end with an incomplete line", "error", err)
	}
	l.logger.Warn("the audit log was moved away or removed: its chain continues in a new file", "file", l.path, "lines", l.records)
	l.file, l.end, l.why = opened, found.bytes, "the file was moved away or removed"
	return found.bytes + found.Torn, nil
}

// mend truncates the file after the last line, and begins a file without lines.
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
