package wal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

// smallSegment makes a log begin a segment every few records.
const smallSegment = 700

// testConfig has a Write that refuses all after the first failure, and work in the
// background that is done at once.
func testConfig() Config {
	return Config{SegmentBytes: smallSegment, Write: refusing(), task: func() task { return &foreground{} }}
}

// refusing is a Write.
func refusing() func(string, func() error) error {
	var failed atomic.Pointer[error]
	return func(_ string, change func() error) error {
		if failed.Load() == nil {
			if err := change(); err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		}
		if err := failed.Load(); err != nil {
			return *err
		}
		return nil
	}
}

// foreground is a task without goroutines: it works at once or, if it is late, when
// somebody waits for it.
type foreground struct {
	late    bool
	pending func()
}

func (f *foreground) try(work func()) bool {
	if f.pending != nil {
		return false
	}
	f.pending = work
	if !f.late {
		f.wait()
	}
	return true
}

func (f *foreground) wait() {
	if work := f.pending; work != nil {
		work()
		f.pending = nil
	}
}

func newDisk(t testing.TB) *memDisk {
	t.Helper()
	d := newMemDisk()
	must(t, layOut(d, smallSegment))
	return d
}

func mustOpen(t testing.TB, d Disk) *Log {
	t.Helper()
	l, err := open(testConfig(), d)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// entry is a log entry of a term whose every field follows from index and term.
func entry(index, term uint64) *raft.Log {
	log := &raft.Log{
		Index: index, Term: term, Type: raft.LogType(index % 2),
		Data:       fmt.Appendf(nil, "data of %d in %d", index, term),
		AppendedAt: time.Unix(1_700_000_000, int64(index)).UTC(),
	}
	switch index % 5 {
	case 3:
		log.Extensions = []byte("ext")
	case 4:
		log.Data, log.AppendedAt = nil, time.Time{}
	}
	return log
}

func entries(first, last, term uint64) []*raft.Log {
	var logs []*raft.Log
	for i := first; i <= last; i++ {
		logs = append(logs, entry(i, term))
	}
	return logs
}

// model is a log as slow and obvious as can be.
type model map[uint64]*raft.Log

func (m model) ends() (first, last uint64) {
	for i := range m {
		if first == 0 || i < first {
			first = i
		}
		last = max(last, i)
	}
	return first, last
}

func (m model) after(o op) model {
	next := maps.Clone(m)
	_, last := m.ends()
	if len(o.logs) > 0 && o.logs[0].Index != last+1 {
		clear(next)
	}
	for _, log := range o.logs {
		next[log.Index] = log
	}
	for i := range m {
		if o.lo <= i && i <= o.hi {
			delete(next, i)
		}
	}
	return next
}

// op is one change of a log: an append, or else a deletion.
type op struct {
	logs   []*raft.Log
	lo, hi uint64
}

func (o op) do(l *Log) error {
	if o.logs != nil {
		return l.StoreLogs(o.logs)
	}
	return l.DeleteRange(o.lo, o.hi)
}

func (o op) String() string {
	if o.logs != nil {
		return fmt.Sprintf("append %d to %d", o.logs[0].Index, o.logs[len(o.logs)-1].Index)
	}
	return fmt.Sprintf("delete %d to %d", o.lo, o.hi)
}

// differs says how a log differs from the model, if it does.
func (m model) differs(l *Log) error {
	first, last := m.ends()
	gotFirst, err := l.FirstIndex()
	gotLast, err2 := l.LastIndex()
	if gotFirst != first || gotLast != last || err != nil || err2 != nil {
		return fmt.Errorf("log is %d to %d (%v %v), want %d to %d", gotFirst, gotLast, err, err2, first, last)
	}
	for _, i := range append(slices.Collect(maps.Keys(m)), first-1, last+1) {
		var got raft.Log
		err := l.GetLog(i, &got)
		if want := m[i]; want == nil && !errors.Is(err, raft.ErrLogNotFound) || want != nil && (err != nil || !cmp.Equal(want, &got)) {
			return fmt.Errorf("entry %d: %+v, %v, want %+v", i, got, err, want)
		}
	}
	return nil
}
