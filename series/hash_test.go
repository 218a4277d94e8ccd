package series_test

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// encoded is what is hashed, written down a second time: the kind, then numbers in eight
// bytes, texts after their length, and small numbers in one.
type encoded []byte

func (e encoded) number(v int64) encoded { return binary.LittleEndian.AppendUint64(e, uint64(v)) }

func (e encoded) text(t string) encoded { return append(e.number(int64(len(t))), t...) }

func (e encoded) flag(b bool) encoded {
	if b {
		return append(e, 1)
	}
	return append(e, 0)
}

func (e encoded) sum() uint64 { return xxhash.Sum64(e) }

// fromScratch is the hash of all that a frozen series has.
func fromScratch(f series.Frozen) uint64 {
	m, _ := f.Record()
	d := series.DefinitionOf(m.GetDefinition())
	e := encoded{1}.text(d.Format).text(d.TimeZone)
	e = append(e, byte(d.Reset), byte(d.Order), byte(d.OnRelease), byte(d.OnExpiry))
	e = e.number(int64(d.ExpiresIn)).number(d.MaxOpen).number(d.MaxKeys).number(int64(d.MaxAheadDays))
	e = e.flag(d.AheadGiven).number(int64(d.MaxLength)).number(int64(len(d.Allowed)))
	for _, a := range d.Allowed {
		e = e.text(a.Name).number(int64(len(a.Values)))
		for _, v := range a.Values {
			e = e.text(v)
		}
	}
	hash := e.number(m.GetSinceUnixNano()).number(m.GetVersion()).number(m.GetTimeUnixNano()).number(m.GetVoidedUntilUnixNano()).
		flag(m.GetSuspended()).number(int64(m.GetForgetting())).text(string(m.GetSecret())).sum()
	f.Pieces(func(p *record) bool {
		hash += pieceFromScratch(p)
		return true
	})
	f.Lost(func(l *raftlogv1.SeriesLostRecord) bool {
		hash += encoded{4}.number(l.Number).flag(l.Released).text(l.Key).sum()
		return true
	})
	return hash
}

// pieceFromScratch has the scope in its first piece.
func pieceFromScratch(p *record) (hash uint64) {
	name := encoded{2}
	for _, v := range p.Scope {
		name = name.text(v)
	}
	scope := int64(name.sum())
	if begin := max(p.Begin, 1); p.First == begin {
		e := encoded{2}.number(scope).number(begin - 1).flag(p.Closed)
		if p.Allotted > 0 {
			e = e.number(p.Allotted)
		}
		for _, a := range p.Allotments {
			until := format.LastDate
			if a.Until != nil {
				until = format.Date(*a.Until)
			}
			e = e.number(a.From).number(a.To).number(int64(until)).text(a.Note).number(a.Starts)
		}
		hash += e.sum()
	}
	for i, n := range p.Numbers {
		e := encoded{3}.number(scope).number(p.First + int64(i)).number(n.TakenUnixNano).number(n.ExpiresUnixNano)
		e = append(e.number(int64(n.Date)).flag(n.Shared), byte(n.State), byte(len(n.Key)), byte(len(n.Label)))
		hash += e.text(n.Key + n.Label + n.Reason).sum()
	}
	return hash
}
