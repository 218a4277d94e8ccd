package logqueue

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
		q := New(r, func(leftOut int) error {
			told = append(told, leftOut)
			return nil
		})
		line := func(n int) string { return fmt.Sprintf("%d%s\n", n, strings.Repeat(".", 1000)) }
		const all = 3 * MaxBytes / 1000
		for n := range all {
			if n == 1 {
				synctest.Wait() // The first line is on its way, and nobody takes it.
			}
			_, _ = q.Write([]byte(line(n)))
		}
		close(r.reads)
		q.Close()
		written := strings.SplitAfter(strings.TrimSuffix(r.lines.String(), "\n"), "\n")
		if len(written) < MaxBytes/1100 || len(written) > MaxBytes/900 || !slices.Equal(told, []int{all - len(written)}) {
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
		q := New(r, func(leftOut int) error {
			told = append(told, leftOut)
			return nil
		})
		for range 3 {
			_, _ = q.Write([]byte("lost\n"))
			synctest.Wait()
		}
		r.fails = nil
		_, _ = q.Write([]byte("room\n"))
		q.Close()
		if got := r.lines.String(); got != "room\n" || !slices.Equal(told, []int{3}) {
			t.Errorf("%q was written, and %v told", got, told)
		}
	})
}

// TestTheEndDoesNotWaitForTheLogsReader for longer than its limit.
func TestTheEndDoesNotWaitForTheLogsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{reads: make(chan struct{})}
		q := New(r, func(int) error { return nil })
		_, _ = q.Write([]byte("nobody reads this\n"))
		begin := time.Now()
		q.Close()
		if took := time.Since(begin); took != FlushLimit {
			t.Errorf("%s", took)
		}
		close(r.reads)
	})
}
