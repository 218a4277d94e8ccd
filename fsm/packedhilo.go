package fsm

import (
	"encoding/binary"

	"github.com/idnode/idnode/hilo"
)

// packedHiLo is a HiLo counter as the table holds it. A hilo.Counter would take
// several times the memory.
type packedHiLo string

// packHiLo packs a counter. Ranges are stored by their distance from Max, which takes two or
// three bytes for most. The distance is negative (its complement) if a holder follows, so that a
// range without a holder takes less.
func packHiLo(c hilo.Counter) packedHiLo {
	var space [256]byte
	b := binary.AppendVarint(space[:0], c.Max)
	b = binary.AppendVarint(b, c.Peak-c.Max)
	var before hilo.Holder
	for _, o := range c.Outstanding {
		below, held := c.Max-o.High, o.Holder.Who != ""
		if held {
			below = ^below
		}
		b = binary.AppendVarint(b, below)
		b = binary.AppendVarint(b, o.High-o.Low)
		b = binary.LittleEndian.AppendUint64(b, o.Token)
		if held {
			b = appendHolder(b, o.Holder, before)
			before = o.Holder
		}
	}
	return packedHiLo(b)
}

func appendHolder(b []byte, h, before hilo.Holder) []byte {
	b = binary.AppendVarint(b, h.At-before.At)
	who := h.Who
	if who == before.Who {
		who = ""
	}
	b = binary.AppendUvarint(b, uint64(len(who)))
	return append(b, who...)
}

func (p packedHiLo) counter() hilo.Counter {
	b := []byte(p)
	next := func() int64 {
		v, n := binary.Varint(b)
		b = b[n:]
		return v
	}
	c := hilo.Counter{Max: next()}
	c.Peak = c.Max + next()
	if len(b) > 0 {
		c.Outstanding = make([]hilo.Outstanding, 0, hilo.MaxOutstanding)
	}
	var holder hilo.Holder
	for len(b) > 0 {
		below := next()
		held := below < 0
		if held {
			below = ^below
		}
		high := c.Max - below
		o := hilo.Outstanding{Range: hilo.Range{Low: high - next(), High: high}}
		o.Token = binary.LittleEndian.Uint64(b)
		b = b[8:]
		if held {
			holder.At += next()
			size, n := binary.Uvarint(b)
			b = b[n:]
			if size > 0 {
				holder.Who = string(p[len(p)-len(b):][:size])
				b = b[size:]
			}
			o.Holder = holder
		}
		c.Outstanding = append(c.Outstanding, o)
	}
	return c
}
