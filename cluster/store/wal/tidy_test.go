package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// fill appends entries until the newest segment is more than half full.
func fill(t *testing.T, l *Log) (last uint64) {
	t.Helper()
	for l.end < l.newest().bytes*3/4 {
		last, _ = l.LastIndex()
		must(t, l.StoreLogs(entries(last+1, last+1, 1)))
	}
	return last + 1
}

// late is a configuration in which work in the background waits until it is needed.
func late() Config {
	cfg := testConfig()
	cfg.task = func() task { return &foreground{late: true} }
	return cfg
}

// filled opens such a log on a new disk, and fills its segment.
func filled(t *testing.T) (d *memDisk, l *Log, last uint64) {
	t.Helper()
	d = newDisk(t)
	l, err := open(late(), d)
	must(t, err)
	return d, l, fill(t, l)
}

// TestBeginningASegmentWaitsForOneSync: neither a file is made nor a directory synced
// for the append that begins a segment.
func TestBeginningASegmentWaitsForOneSync(t *testing.T) {
	d, l, last := filled(t)
	l.preparing.wait()
	// The header, the record, their sync, the name, the mark.
	d.left = 5
	must(t, l.StoreLogs(entries(last+1, last+6, 1)))
	if l.newest().number != 2 {
		t.Fatalf("the newest segment is %d", l.newest().number)
	}
	d.left = -1
	m := model{}.after(op{logs: entries(1, last+6, 1)})
	if err := m.differs(mustOpen(t, d.powerLoss(rand.New(rand.NewPCG(1, 2))))); err != nil {
		t.Errorf("after a loss of power: %v", err)
	}
}

// TestDraftThatContinuesTheLogIsPartOfIt: a loss of power may take back the name of a
// segment that has begun, but nothing in it.
func TestDraftThatContinuesTheLogIsPartOfIt(t *testing.T) {
	d, l, last := filled(t)
	must(t, l.StoreLogs(entries(last+1, last+6, 1)))
	begun := l.newest()
	d.files[begun.draft()] = d.files[begun.name()]
	delete(d.files, begun.name())
	m := model{}.after(op{logs: entries(1, last+6, 1)})
	again := mustOpen(t, d.clone())
	if err := m.differs(again); err != nil {
		t.Error(err)
	}
	names, _ := again.disk.Names()
	if !slices.Contains(names, begun.name()) || slices.Contains(names, begun.draft()) {
		t.Errorf("the files are %v", names)
	}
	// It follows what is before it, or something is damaged.
	first := d.files[l.segments[0].name()].data
	clear(first[len(first)/2:])
	d.files[markName] = newDisk(t).files[markName]
	if _, err := open(testConfig(), d); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a draft behind a damaged segment: %v", err)
	}
}

// TestSegmentsWithoutAnInode: a log that is open, or was once, has the file of its next segment,
// whatever a crash left in it. The segment after that needs an inode.
func TestSegmentsWithoutAnInode(t *testing.T) {
	for name, left := range map[string][]byte{
		"nothing":         nil,
		"a part of zeros": make([]byte, smallSegment/2),
		"a torn begin":    append(make([]byte, headerBytes), "a record whose header is not on disk"...),
		"more than usual": make([]byte, 2*smallSegment),
		"anything":        []byte(strings.Repeat("xyz", smallSegment)),
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			must(t, mustOpen(t, d).Close())
			draft := d.files[(&segment{number: 2}).draft()]
			draft.data, draft.durable = left, left
			d.full = true
			l := mustOpen(t, d)
			last := fill(t, l)
			must(t, l.StoreLogs(entries(last+1, last+6, 1)))
			if s := l.newest(); s.number != 2 || s.file.(*memFile) != draft || s.bytes != max(smallSegment, int64(len(left))) {
				t.Errorf("the newest segment is %d, of %d bytes", s.number, s.bytes)
			}
			m := model{}.after(op{logs: entries(1, last+6, 1)})
			if err := m.differs(mustOpen(t, d.powerLoss(rand.New(rand.NewPCG(1, 2))))); err != nil {
				t.Error(err)
			}
			if err := l.StoreLogs(entries(last+7, last+200, 1)); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("the segment after that: %v", err)
			}
		})
	}
}

// TestDroppingBesideAnAppend: segments are removed while the log is changed, with one
// sync, and a loss of power before it may keep any of them.
func TestDroppingBesideAnAppend(t *testing.T) {
	d := newDisk(t)
	l, err := open(late(), d)
	must(t, err)
	for i := uint64(1); len(l.segments) < 8; i++ {
		must(t, l.StoreLogs(entries(i, i, 1)))
	}
	l.preparing.wait() // The name of the newest is on disk then.
	_, last := l.held.first, l.held.last
	must(t, l.DeleteRange(1, last-1))
	names, _ := d.Names()
	must(t, l.StoreLogs(entries(last+1, last+1, 1)))
	l.rest()
	kept, _ := d.Names()
	if len(kept) > len(names)-6 {
		t.Errorf("of %v there are still %v", names, kept)
	}
	m := model{}.after(op{logs: entries(1, last+1, 1)}).after(op{lo: 1, hi: last - 1})
	d.changes = d.changes[:0]
	for some := range uint64(1 << 5) {
		c := d.clone()
		for i := range 5 {
			if s := (&segment{number: uint64(i + 1)}); some>>i&1 == 1 {
				c.files[s.name()] = &memFile{disk: c}
			}
		}
		if some>>4&1 == 1 { // It would be the one before those that are needed.
			continue
		}
		again := mustOpen(t, c)
		if err := m.differs(again); err != nil {
			t.Fatalf("%05b of the removed segments are still there: %v", some, err)
		}
		if names, _ := c.Names(); len(names) > len(kept) {
			t.Fatalf("%v were not removed", names)
		}
	}
}

// TestNoSegmentIsRemovedBeforeTheNameOfTheOneThatStays is on disk: a loss of power could
// keep the removals and take back the name, and the log would have no segment.
func TestNoSegmentIsRemovedBeforeTheNameOfTheOneThatStays(t *testing.T) {
	d, l, last := filled(t)
	must(t, l.StoreLogs(entries(last+1, last+6, 1)))
	must(t, l.DeleteRange(1, last))
	d.left = 2 // The mark's sync and the removal, if there is one.
	l.dropping.wait()
	d.left = -1
	m := model{}.after(op{logs: entries(1, last+6, 1)}).after(op{lo: 1, hi: last})
	for seed := range uint64(16) {
		if err := m.differs(mustOpen(t, d.powerLoss(rand.New(rand.NewPCG(seed, 2))))); err != nil {
			t.Errorf("after a loss of power: %v", err)
		}
	}
	l.preparing.wait()
	must(t, l.StoreLogs(entries(last+7, last+7, 1)))
	l.rest()
	if _, err := d.Open(fmt.Sprintf(nameFormat, 1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the segment without an entry is still there: %v", err)
	}
}

// TestFailedRemovalEndsChanges: nobody waits for it, and it is not forgotten.
func TestFailedRemovalEndsChanges(t *testing.T) {
	d, l, last := filled(t)
	must(t, l.StoreLogs(entries(last+1, last+6, 1)))
	l.rest()
	must(t, l.DeleteRange(1, last))
	l.preparing.wait()
	broken := errors.New("input/output error")
	d.failSync = broken
	l.rest()
	if err := l.StoreLog(entry(last+7, 1)); !errors.Is(err, broken) {
		t.Errorf("an append after it: %v", err)
	}
}

// TestSegmentsBeginAtDifferentEntries on the nodes of a cluster.
func TestSegmentsBeginAtDifferentEntries(t *testing.T) {
	sizes := map[int64]bool{}
	for i := range 9 {
		l := &Log{cfg: Config{SegmentBytes: DefaultSegmentBytes, Owner: fmt.Append(nil, i/3)}}
		size := l.sizeOf(uint64(i % 3))
		if size < DefaultSegmentBytes*3/4 || size > DefaultSegmentBytes {
			t.Errorf("a segment of %d bytes", size)
		}
		sizes[size] = true
	}
	if len(sizes) < 9 {
		t.Errorf("9 segments have %d sizes", len(sizes))
	}
}

// unreadable is a disk whose reads fail, as a bad sector's do, where a read goes
// further than an offset in the files whose names end so.
type unreadable struct {
	*memDisk
	failing bool
	suffix  string
	from    int64
}

func (d *unreadable) Open(name string) (File, error) {
	f, err := d.memDisk.Open(name)
	return unreadableFile{f, d, strings.HasSuffix(name, d.suffix)}, err
}

type unreadableFile struct {
	File
	disk *unreadable
	has  bool
}

func (f unreadableFile) ReadAt(p []byte, at int64) (int, error) {
	if f.disk.failing && f.has && at+int64(len(p)) > f.disk.from {
		return 0, syscall.EIO
	}
	return f.File.ReadAt(p, at)
}

// TestReadErrorIsNoDamage: nobody has seen what the disk has.
func TestReadErrorIsNoDamage(t *testing.T) {
	d := &unreadable{memDisk: newDisk(t)}
	l := mustOpen(t, d)
	must(t, l.StoreLogs(entries(1, 5, 1)))
	d.failing = true
	err := l.GetLog(3, new(raft.Log))
	_, openErr := open(testConfig(), d)
	for what, err := range map[string]error{"an entry": err, "the log": openErr} {
		if !errors.Is(err, syscall.EIO) || errors.Is(err, ErrCorrupt) {
			t.Errorf("reading %s: %v", what, err)
		}
	}
	d.failing = false
	l.newest().file.(unreadableFile).File.(*memFile).data = nil
	if err := l.GetLog(3, new(raft.Log)); !errors.Is(err, ErrCorrupt) || !errors.Is(err, io.EOF) {
		t.Errorf("reading an entry that is not there any more: %v", err)
	}
}

// TestADraftThatCannotBeRead keeps a log from being opened only where it may be part
// of the log.
func TestADraftThatCannotBeRead(t *testing.T) {
	d, l, last := filled(t)
	l.preparing.wait()
	begun := l.next
	reads := func(disk *memDisk, from int64) error {
		_, err := open(testConfig(), &unreadable{memDisk: disk, failing: true, suffix: draftSuffix, from: from})
		return err
	}
	if err := reads(d.clone(), headerBytes); err != nil {
		t.Errorf("with a sound beginning, and never begun: %v", err)
	}
	if err := reads(d.clone(), 0); !errors.Is(err, syscall.EIO) {
		t.Errorf("nobody knows whether it was begun: %v", err)
	}
	must(t, l.StoreLogs(entries(last+1, last+6, 1)))
	d.files[begun.draft()] = d.files[begun.name()]
	delete(d.files, begun.name())
	if err := reads(d.clone(), headerBytes); !errors.Is(err, syscall.EIO) {
		t.Errorf("with acknowledged records: %v", err)
	}
}

// TestAFailedLogIsClosedWhole: also files that were still to be removed.
func TestAFailedLogIsClosedWhole(t *testing.T) {
	d := newDisk(t)
	for _, f := range d.files {
		f.open = 0
	}
	l, err := open(late(), d)
	must(t, err)
	for i := uint64(1); len(l.segments) < 8; i++ {
		must(t, l.StoreLogs(entries(i, i, 1)))
	}
	must(t, l.DeleteRange(1, l.held.last-12))
	must(t, l.DeleteRange(1, l.held.last-1))
	if len(l.surplus) == 0 {
		t.Fatal("all segments are being removed")
	}
	d.failSync = errors.New("input/output error")
	if err := l.StoreLog(entry(l.held.last+1, 1)); err == nil {
		t.Fatal("the disk does not fail")
	}
	if err := l.Close(); err == nil {
		t.Error("Close does not say so")
	}
	for name, f := range d.files {
		if f.open != 0 {
			t.Errorf("%s is open %d times", name, f.open)
		}
	}
}

// BenchmarkSegments appends 128 KiB at a time, and says how long appends take that
// begin a segment, and how long the others, as medians and at most.
func BenchmarkSegments(b *testing.B) {
	cfg := Config{Dir: filepath.Join(b.TempDir(), "log"), Write: refusing()}
	must(b, Create(cfg))
	l, err := Open(cfg)
	must(b, err)
	data := make([]byte, 128<<10)
	took := map[bool][]time.Duration{}
	for i := uint64(1); i <= uint64(b.N); i++ {
		time.Sleep(time.Millisecond) // A full disk queue would be measured otherwise.
		before, began := l.newest(), time.Now()
		must(b, l.StoreLog(&raft.Log{Index: i, Term: 1, Data: data}))
		begins := l.newest() != before
		took[begins] = append(took[begins], time.Since(began))
		if len(l.segments) > 64 {
			must(b, l.DeleteRange(1, i-1))
		}
	}
	must(b, l.Close())
	for begins, name := range map[bool]string{false: "append", true: "begin"} {
		if all := took[begins]; len(all) > 0 {
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds()), name+"-p50-us")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), name+"-p99-us")
			b.ReportMetric(float64(all[len(all)-1].Microseconds()), name+"-max-us")
		}
	}
}
