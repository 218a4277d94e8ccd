package wal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/idnode/idnode/internal/crc32c"
	"github.com/idnode/idnode/internal/disklock"
)

const (
	markName = "mark"
	// markBytes is a slot: segment, end, last index (8 each), sum of the last
	// record (4), CRC-32C (4).
	markBytes = 8 + 8 + 8 + 4 + 4
	// slotDistance keeps the two slots in pages of their own.
	slotDistance = 4096
)

// mark is the position up to which the log was acknowledged.
type mark struct {
	segment uint64
	// end is the offset behind the last acknowledged record, or behind the
	// segment's header.
	end int64
	// last is the last index then, chain the sum of that record.
	last  uint64
	chain uint32
}

func (m mark) compare(o mark) int {
	return cmp.Or(cmp.Compare(m.segment, o.segment), cmp.Compare(m.end, o.end))
}

func (m mark) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, markBytes), m.segment)
	b = binary.BigEndian.AppendUint64(b, uint64(m.end))
	b = binary.BigEndian.AppendUint64(b, m.last)
	b = binary.BigEndian.AppendUint32(b, m.chain)
	return binary.BigEndian.AppendUint32(b, crc32c.Sum(b))
}

func decodeMark(b []byte) (mark, error) {
	m := mark{
		segment: binary.BigEndian.Uint64(b),
		end:     int64(binary.BigEndian.Uint64(b[8:])),
		last:    binary.BigEndian.Uint64(b[16:]),
		chain:   binary.BigEndian.Uint32(b[24:]),
	}
	if crc32c.Sum(b[:28]) != binary.BigEndian.Uint32(b[28:]) {
		return mark{}, fmt.Errorf("%w: the log's mark", ErrCorrupt)
	}
	return m, nil
}

type marker struct {
	file File
	// slot is where the next mark goes: over the older of the two.
	slot int64
	// syncing is held during a sync: a later one must not be overtaken.
	syncing disklock.Mutex
}

func createMarker(d Disk, m mark) error {
	f, err := d.Create(markName)
	if err != nil {
		return err
	}
	slots := make([]byte, slotDistance+markBytes)
	copy(slots, m.encode())
	copy(slots[slotDistance:], m.encode())
	_, err = f.WriteAt(slots, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// openMarker opens the mark file and returns the newest mark. Both slots must be sound: a
// write of one sector is never torn, and an older mark in place of a damaged one would
// take back acknowledged records.
func openMarker(d Disk) (*marker, mark, error) {
	f, err := d.Open(markName)
	if err != nil {
		return nil, mark{}, missing(markName, err)
	}
	m := &marker{file: f, syncing: disklock.New()}
	newest, err := m.read()
	if err != nil {
		return nil, mark{}, errors.Join(err, f.Close())
	}
	return m, newest, nil
}

func (m *marker) read() (newest mark, err error) {
	var marks [2]mark
	for i := range marks {
		b := make([]byte, markBytes)
		if _, err := m.file.ReadAt(b, int64(i)*slotDistance); err != nil {
			return mark{}, unread("the log's mark", err)
		}
		if marks[i], err = decodeMark(b); err != nil {
			return mark{}, err
		}
	}
	if marks[0].compare(marks[1]) > 0 {
		m.slot = 1
		return marks[0], nil
	}
	return marks[1], nil
}

// put writes a mark without syncing it.
func (m *marker) put(next mark) error {
	_, err := m.file.WriteAt(next.encode(), m.slot*slotDistance)
	m.slot = 1 - m.slot
	return err
}

// sync makes the newest mark durable. It may run concurrently with put.
func (m *marker) sync() error {
	m.syncing.Lock()
	defer m.syncing.Unlock()
	return m.file.Sync()
}
