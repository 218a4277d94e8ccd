package fsm

import (
	"encoding/binary"

	"github.com/idnode/idnode/hilo"
)

// packedHiLo is a HiLo counter as the table holds it. A hilo.Counter would take
// several times the memory.
type packedHiLo string

// packHiLo packs a counter. Ranges are stored by their distance from Max, which
// takes two or three bytes for most.
func packHiLo(c hilo.Counter) packedHiLo {
	room := 2*binary.MaxVarintLen64 + len(c.Outstanding)*(2*binary.MaxVarintLen64+8)
	b := binary.AppendVarint(make([]byte, 0, room), c.Max)
	b = binary.AppendVarint(b, c.Peak-c.Max)
	for _, o := range c.Outstanding {
		b = binary.AppendVarint(b, c.Max-o.High)
		b = binary.AppendVarint(b, o.High-o.Low)
		b = binary.LittleEndian.AppendUint64(b, o.Token)
	}
	return packedHiLo(b)
}

// counter unpacks the counter.
func (p packedHiLo) counter() hilo.Counter {
	b := []byte(p)
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
