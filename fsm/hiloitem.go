package fsm

import (
	"encoding/binary"

	"github.com/idnode/idnode/hilo"
)

// hiloItem is a HiLo counter as the tree holds it: 24 bytes and one string that
// begins with the tag and goes on with the counter, packed. A hilo.Counter beside
// the tag would take twice the memory.
type hiloItem struct {
	packed   string
	db       uint32
	tagBytes uint16
}

func (a hiloItem) less(b hiloItem) bool {
	if a.db != b.db {
		return a.db < b.db
	}
	return a.tag() < b.tag()
}

// tag returns the folded tag.
func (a hiloItem) tag() string { return a.packed[:a.tagBytes] }

// hiloKey is an item that finds the counter of a tag.
func hiloKey(db uint32, tag string) hiloItem {
	return hiloItem{packed: tag, db: db, tagBytes: uint16(len(tag))}
}

// packHiLo returns a counter as an item. Ranges are stored by their distance
// from Max, which takes two or three bytes for most.
func packHiLo(db uint32, tag string, c hilo.Counter) hiloItem {
	room := len(tag) + 2*binary.MaxVarintLen64 + len(c.Outstanding)*(2*binary.MaxVarintLen64+8)
	b := append(make([]byte, 0, room), tag...)
	b = binary.AppendVarint(b, c.Max)
	b = binary.AppendVarint(b, c.Peak-c.Max)
	for _, o := range c.Outstanding {
		b = binary.AppendVarint(b, c.Max-o.High)
		b = binary.AppendVarint(b, o.High-o.Low)
		b = binary.LittleEndian.AppendUint64(b, o.Token)
	}
	return hiloItem{packed: string(b), db: db, tagBytes: uint16(len(tag))}
}

// counter unpacks the counter.
func (a hiloItem) counter() hilo.Counter {
	b := []byte(a.packed[a.tagBytes:])
	next := func() int64 {
		v, n := binary.Varint(b)
		b = b[n:]
		return v
	}
	c := hilo.Counter{Max: next()}
	c.Peak = c.Max + next()
	for len(b) > 0 {
		high := c.Max - next()
		o := hilo.Outstanding{Range: hilo.Range{Low: high - next(), High: high}}
		o.Token = binary.LittleEndian.Uint64(b)
		b = b[8:]
		c.Outstanding = append(c.Outstanding, o)
	}
	return c
}
