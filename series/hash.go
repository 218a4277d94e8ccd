package series

import "github.com/idnode/idnode/internal/statehash"

// The kinds of records.
const (
	recordSeries statehash.RecordKind = iota + 1
	recordScope
	recordNumber
	recordLost
)

// Hash returns a hash of all that the series stores. Two series with the same calls, or
// one and its restored copy, have equal ones.
func (s *Series) Hash() uint64 {
	var space statehash.Space
	d := &s.definition
	e := space.Begin(recordSeries).Text(d.Format).Text(d.TimeZone)
	e = append(e, byte(d.Reset), byte(d.Order), byte(d.OnRelease), byte(d.OnExpiry))
	e = e.Number(uint64(d.ExpiresIn)).Number(uint64(d.MaxOpen)).Number(uint64(d.MaxKeys)).Number(uint64(d.MaxAheadDays))
	e = e.Flag(d.AheadGiven).Number(uint64(d.MaxLength)).Number(uint64(len(d.Allowed)))
	for _, a := range d.Allowed {
		e = e.Text(a.GetName()).Number(uint64(len(a.GetValues())))
		for _, v := range a.GetValues() {
			e = e.Text(v)
		}
	}
	e = e.Number(uint64(s.since)).Number(uint64(s.version)).Number(uint64(s.now)).Number(uint64(s.voidedUntil)).Flag(s.suspended)
	e = e.Number(uint64(s.forgetting)).Text(s.secret)
	return uint64(*s.scopes.hash+s.lostHash) + e.Hash()
}

func hashScopeName(values []string) uint64 {
	var space statehash.Space
	e := space.Begin(recordScope)
	for _, v := range values {
		e = e.Text(v)
	}
	return e.Hash()
}

func (c *scope) hashHeader() uint64 {
	var space statehash.Space
	e := space.Begin(recordScope).Number(c.name).Number(uint64(c.offset)).Flag(c.closed)
	if a := c.allotted; a != nil {
		e = e.Number(uint64(a.changes))
		for i := range a.ranges {
			r := &a.ranges[i]
			e = e.Number(uint64(r.from)).Number(uint64(r.to)).Number(uint64(r.until)).Text(r.note).Number(uint64(r.starts))
		}
	}
	return e.Hash()
}

// hashRecord is 0 for a record that has no state yet.
func (c *scope) hashRecord(number int64, r *record) uint64 {
	if r.state == 0 {
		return 0
	}
	var space statehash.Space
	e := space.Begin(recordNumber).Number(c.name).Number(uint64(number)).Number(uint64(r.taken)).Number(uint64(r.expires))
	e = append(e.Number(uint64(r.date)).Flag(r.shared), byte(r.state), r.keyLen, r.labelLen)
	return e.Text(r.text).Hash()
}

func (l lostKey) hash(key string) uint64 {
	var space statehash.Space
	return space.Begin(recordLost).Number(uint64(l.number)).Flag(l.released).Text(key).Hash()
}
