package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/internal/crc32c"
	"github.com/idnode/idnode/internal/dirfile"
)

// atRest returns the disk of a small log of several segments, closed, with its
// model. The file of the next segment, in which anything may be, is not there.
func atRest(t *testing.T) (*memDisk, model) {
	t.Helper()
	d := newDisk(t)
	l, m := mustOpen(t, d), model{}
	for _, o := range story[:10] {
		must(t, o.do(l))
		m = m.after(o)
	}
	must(t, l.Close())
	delete(d.files, (&segment{number: l.newest().number + 1}).draft())
	return d, m
}

// isUsed reports whether a byte of a file of a log at rest means anything: not between
// the marks, and not behind the last record.
func isUsed(name string, content []byte, at int) bool {
	if name == markName {
		return at%slotDistance < markBytes
	}
	return len(strings.TrimRight(string(content[at:]), "\x00")) > 0
}

func TestEveryFlippedByteIsDamage(t *testing.T) {
	d, m := atRest(t)
	for name, f := range d.files {
		for at := range f.data {
			if at%10 > 0 && !isUsed(name, f.data, at) {
				continue
			}
			bad := d.clone()
			bad.files[name].data[at] ^= 1 << (at % 8)
			l, err := open(testConfig(), bad)
			switch {
			case errors.Is(err, ErrCorrupt):
			case err != nil:
				t.Fatalf("byte %d of %s: %v", at, name, err)
			case isUsed(name, f.data, at):
				t.Fatalf("byte %d of %s: not noticed", at, name)
			default:
				if err := m.differs(l); err != nil {
					t.Fatalf("unused byte %d of %s: %v", at, name, err)
				}
			}
		}
	}
}

func TestEveryOtherLengthIsDamage(t *testing.T) {
	d, _ := atRest(t)
	for name, f := range d.files {
		for length := range f.data {
			bad := d.clone()
			bad.files[name].data = bad.files[name].data[:length]
			if _, err := open(testConfig(), bad); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s with %d bytes: %v", name, length, err)
			}
		}
		if name == markName {
			continue
		}
		bad := d.clone()
		bad.files[name].data = append(bad.files[name].data, 0)
		if _, err := open(testConfig(), bad); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s with a byte more: %v", name, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	segments := func(d *memDisk) []string {
		names, _ := d.Names()
		return slices.DeleteFunc(names, func(name string) bool { return name == markName })
	}
	for name, damage := range map[string]func(d *memDisk){
		"no mark":           func(d *memDisk) { delete(d.files, markName) },
		"no segments":       func(d *memDisk) { deleteAll(d, segments(d)) },
		"no first segment":  func(d *memDisk) { delete(d.files, segments(d)[0]) },
		"no second segment": func(d *memDisk) { delete(d.files, segments(d)[1]) },
		"no last segment":   func(d *memDisk) { delete(d.files, segments(d)[len(segments(d))-1]) },
		"segments that changed places": func(d *memDisk) {
			all := segments(d)
			d.files[all[0]], d.files[all[1]] = d.files[all[1]], d.files[all[0]]
		},
		"another log's segment": func(d *memDisk) {
			other, _ := atRest(t)
			d.files[segments(d)[1]] = other.files[segments(d)[1]]
		},
		"another log's mark": func(d *memDisk) {
			other, _ := atRest(t)
			d.files[markName] = other.files[markName]
		},
		"a new log's mark": func(d *memDisk) {
			d.files[markName] = newDisk(t).files[markName]
		},
		"a foreign file": func(d *memDisk) { d.files["x"] = &memFile{disk: d} },
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := atRest(t)
			if len(segments(d)) < 3 {
				t.Fatalf("too few segments: %v", segments(d))
			}
			damage(d)
			if _, err := open(testConfig(), d); !errors.Is(err, ErrCorrupt) {
				t.Errorf("open: %v", err)
			}
		})
	}
}

// TestALaterProgramsFileStays: a name that begins with a dot is not the log's.
func TestALaterProgramsFileStays(t *testing.T) {
	d, m := atRest(t)
	d.files[".later"] = &memFile{disk: d}
	if err := m.differs(mustOpen(t, d)); err != nil || d.files[".later"] == nil {
		t.Errorf("%v, %v", err, d.files)
	}
}

// TestANewerSegmentIsNoDamage: an operator who learns of damage empties the directory.
func TestANewerSegmentIsNoDamage(t *testing.T) {
	d, _ := atRest(t)
	for name := range d.files {
		if name == markName {
			continue
		}
		bad := d.clone()
		b := bad.files[name].data
		b[len(segmentMagic)-1]++
		binary.BigEndian.PutUint32(b[headerBytes-4:], crc32c.Sum(b[:headerBytes-4]))
		before := bad.clone()
		if _, err := open(testConfig(), bad); !errors.Is(err, dirfile.ErrOtherVersion) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		for name := range before.files {
			if !bytes.Equal(bad.files[name].data, before.files[name].data) {
				t.Errorf("%s was changed", name)
			}
		}
	}
}

func deleteAll(d *memDisk, names []string) {
	for _, name := range names {
		delete(d.files, name)
	}
}

// TestDamageAboveTheMark sets back the mark, as a loss of power may, and damages
// one record: with a good one behind it, that is damage. Of the last record it
// looks like a torn write, which the package's comment admits.
func TestDamageAboveTheMark(t *testing.T) {
	d := newDisk(t)
	l := mustOpen(t, d)
	must(t, l.StoreLogs(entries(1, 1, 1)))
	early := slices.Clone(d.files[markName].data)
	var ends []int
	for i := uint64(2); i <= 4; i++ {
		ends = append(ends, int(l.end))
		must(t, l.StoreLogs(entries(i, i, 1)))
	}
	for from, begin := range ends {
		for at := begin; at < int(l.end); at++ {
			if from < len(ends)-1 && at >= ends[from+1] {
				break
			}
			bad := d.clone()
			bad.files[markName].data = slices.Clone(early)
			bad.files[l.segments[0].name()].data[at] ^= 0x10
			again, err := open(testConfig(), bad)
			if from < len(ends)-1 {
				if !errors.Is(err, ErrCorrupt) {
					t.Fatalf("byte %d, in a record with a good one behind it: %v", at, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("byte %d, in the last record: %v", at, err)
			}
			if err := (model{}).after(op{logs: entries(1, 3, 1)}).differs(again); err != nil {
				t.Fatalf("byte %d: %v", at, err)
			}
		}
	}
}

// TestDamageWhileOpen flips each byte of an entry on disk under a running log.
func TestDamageWhileOpen(t *testing.T) {
	d := newDisk(t)
	l := mustOpen(t, d)
	must(t, l.StoreLogs(entries(1, 3, 1)))
	ref := l.entries[1]
	content := ref.segment.file.(*memFile).data
	for at := ref.offset; at < ref.offset+int64(ref.bytes); at++ {
		content[at] ^= 4
		if err := l.GetLog(2, entry(0, 0)); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d: %v", at, err)
		}
		content[at] ^= 4
	}
	must(t, l.GetLog(2, entry(0, 0)))
}

// TestRecordOfAnotherLog puts a record into the right place of another log, above
// its mark: only the chain tells them apart.
func TestRecordOfAnotherLog(t *testing.T) {
	one, other := newDisk(t), newDisk(t)
	must(t, mustOpen(t, one).StoreLogs(entries(1, 1, 1)))
	l := mustOpen(t, other)
	must(t, l.StoreLogs(entries(1, 1, 1)))
	end := l.end
	must(t, l.StoreLogs(entries(2, 2, 1)))
	name := l.segments[0].name()
	copy(one.files[name].data[end:], other.files[name].data[end:])
	if _, err := open(testConfig(), one); !errors.Is(err, ErrCorrupt) {
		t.Errorf("open: %v", err)
	}
}
