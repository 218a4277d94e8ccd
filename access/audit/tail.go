package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// tailBytes is how much of the end of a file Tail reads.
const tailBytes = 256 << 10

// Tail returns the newest lines, at most n, oldest first: of the last 256 KiB of the file
// at the path, and only those that are whole. It waits for no write. One reading goes on at a
// time; when ctx ends first, it goes on alone.
func (l *Log) Tail(ctx context.Context, n int) ([]json.RawMessage, error) {
	if err := l.reading.LockContext(ctx); err != nil {
		return nil, fmt.Errorf("audit log: another reading has not ended: %w", err)
	}
	type result struct {
		lines []json.RawMessage
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer l.reading.Unlock()
		lines, err := tail(l.path, n)
		done <- result{lines, err}
	}()
	select {
	case read := <-done:
		return read.lines, read.err
	case <-ctx.Done():
		return nil, fmt.Errorf("audit log: the disk has not answered: %w", ctx.Err())
	}
}

func tail(path string, n int) ([]json.RawMessage, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // It was only read.
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	text, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-tailBytes), tailBytes))
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	lines := []json.RawMessage{}
	for line := range bytes.Lines(text) {
		if json.Valid(line) {
			lines = append(lines, bytes.TrimSpace(line))
		}
	}
	return lines[max(0, len(lines)-n):], nil
}
