package series

import (
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// maxVersion is above that of every series, and can be counted up from.
const maxVersion = 1 << 53

// Restore returns a series without numbers, of which PutNumbers and PutLost put in what a
// frozen one had. The errors are those of New.
func Restore(m *raftlogv1.SeriesRecord) (*Series, error) {
	return restore(rulesOf(m))
}

func rulesOf(m *raftlogv1.SeriesRecord) rules {
	return rules{
		definition: DefinitionOf(m.GetDefinition()), version: m.GetVersion(), since: m.GetSinceUnixNano(), now: m.GetTimeUnixNano(),
		suspended: m.GetSuspended(), voidedUntil: m.GetVoidedUntilUnixNano(),
		forgetting: int32(min(m.GetForgetting(), MaxScopes+1)), secret: string(m.GetSecret()),
	}
}

func restore(r rules) (*Series, error) {
	s, err := New(r.definition)
	if err != nil {
		return nil, err
	}
	if r.version < 1 || r.version > maxVersion {
		return nil, invalid("version", "is out of range")
	}
	if r.voidedUntil > r.now {
		return nil, invalid("voided_until", "is in the future")
	}
	if r.forgetting > 0 && !r.suspended {
		return nil, invalid("forgetting", "is of a series that is not suspended")
	}
	s.rules = r
	s.Scramble([]byte(r.secret))
	return s, nil
}

// PutNumbers adds numbers of a frozen series, behind those that are there, or none. The errors
// are *Error and *format.Error.
func (s *Series) PutNumbers(p *raftlogv1.SeriesNumbersRecord) error {
	c, err := s.scopeOf(p.GetScope())
	if err != nil {
		return err
	}
	numbers, err := s.recordsOf(c, p)
	if err != nil {
		return err
	}
	allotted := allotmentsOf(p)
	if err := s.checkNext(c, p, numbers); err != nil {
		return err
	}
	if err := s.checkAllotted(c, p, allotted); err != nil {
		return err
	}
	fresh := !s.scopes.has(c)
	if c = s.scopes.begin(c); c.empty() {
		c.moveTo(offsetOf(p))
	}
	if fresh && allotted != nil {
		c.setAllotments(allotted)
	}
	for i := range numbers {
		number := p.GetFirst() + int64(i)
		if number > c.offset {
			number = c.add()
		}
		s.store(c, number, &numbers[i])
	}
	if p.GetClosed() {
		c.close()
	}
	return nil
}

// offsetOf returns the last number from before the scope of a piece.
func offsetOf(p *raftlogv1.SeriesNumbersRecord) int64 { return max(p.GetBegin(), 1) - 1 }

// recordsOf returns the numbers of a piece. It refuses what no piece of a scope has.
func (x *contents) recordsOf(c *scope, p *raftlogv1.SeriesNumbersRecord) ([]record, error) {
	first, count, most := p.GetFirst(), int64(len(p.GetNumbers())), x.most()
	switch {
	case p.GetAllotted() < 0 || p.GetAllotted() >= maxVersion || p.GetAllotted() == 0 && len(p.GetAllotments()) > 0:
		return nil, invalid("allotted", "is out of range")
	case p.GetBegin() < 0 || p.GetBegin() > most:
		return nil, invalid("begin", "cannot be shown by the format")
	case count > slabSize:
		return nil, invalid("numbers", "are more than 256")
	case count == 0 && first != offsetOf(p)+1:
		return nil, invalid("numbers", "are empty")
	case first < 1 || first <= offsetOf(p) && first+count-1 > offsetOf(p):
		return nil, invalid("numbers", "do not follow those before them")
	case first > most || first+count-1 > most:
		return nil, invalid("numbers", "are more than the format has")
	}
	keys, checked := make(map[string]bool, count), format.LastDate+1
	records := make([]record, count)
	for i, n := range p.GetNumbers() {
		// Neighbours mostly have one date, and a date costs more than all the rest.
		date := format.Date(n.GetDate())
		if date != checked && !x.dated(c, date) {
			return nil, invalid("numbers", "have one with a wrong date")
		}
		checked = date
		if err := checkStored(n, keys); err != nil {
			return nil, err
		}
		if first <= offsetOf(p) && NumberState(n.GetState()) != Confirmed {
			return nil, invalid("numbers", "have one from before the scope that is not confirmed")
		}
		records[i] = recordOf(n)
	}
	return records, nil
}

// checkNext finds what does not come next.
func (s *Series) checkNext(c *scope, p *raftlogv1.SeriesNumbersRecord, numbers []record) error {
	last := c.last
	if c.empty() {
		last = offsetOf(p)
	}
	before := p.GetFirst() <= offsetOf(p)
	if before {
		last, _ = c.entered.below(c.offset + 1)
	}
	switch {
	case before && (!s.scopes.has(c) || c.offset != offsetOf(p) || p.GetFirst() <= last):
		return invalid("numbers", "from before the scope do not follow its others")
	case before:
	case !c.empty() && c.offset != offsetOf(p):
		return invalid("begin", "is another one than before")
	case p.GetFirst() != last+1 || s.scopes.has(c) && len(numbers) == 0:
		return invalid("numbers", "do not follow those before them")
	}
	for i := range numbers {
		switch r := &numbers[i]; {
		case s.suspended && s.forgetting == 0 && (r.state == Open || r.state == Released):
			return invalid("numbers", "have one that is open or released, and the series is suspended")
		case r.owner() != "" && s.Knows(r.owner()):
			return invalid("keys", "are known already")
		}
	}
	return nil
}

// checkAllotted refuses allotments that cannot be, or that are not those of the pieces before.
func (s *Series) checkAllotted(c *scope, p *raftlogv1.SeriesNumbersRecord, a *allotments) error {
	switch wrong := a.wrong(offsetOf(p), 0, s.most()); {
	case wrong != "":
		return invalid("allotments", wrong)
	case s.scopes.has(c) && !c.allotted.equal(a):
		return invalid("allotments", "are others than before")
	}
	return nil
}

// store gives a number of a scope a record. No other key has the number.
func (t *keyTable) store(c *scope, number int64, stored *record) {
	c.change(number, func(r *record) { *r = *stored })
	if key := stored.owner(); key != "" {
		t.index.set(key, refOf(c.index, number))
	}
}

// recordOf returns a stored number that was checked.
func recordOf(n *raftlogv1.SeriesStored) record {
	r := record{
		taken: n.GetTakenUnixNano(), expires: n.GetExpiresUnixNano(), date: format.Date(n.GetDate()), state: NumberState(n.GetState()),
		shared: n.GetShared(),
	}
	r.write(n.GetKey(), n.GetLabel(), n.GetReason())
	return r
}

// fill sets a stored number to a record.
func (r *record) fill(n *raftlogv1.SeriesStored) {
	n.Key, n.Label, n.State, n.Shared, n.Date = r.key(), r.label(), uint32(r.state), r.shared, int32(r.date)
	n.TakenUnixNano, n.ExpiresUnixNano, n.Reason = r.taken, r.expires, r.reason()
}

// checkStored finds what no series would have stored. keys are those of the numbers before.
func checkStored(n *raftlogv1.SeriesStored, keys map[string]bool) error {
	key, state := n.GetKey(), NumberState(small(n.GetState()))
	switch {
	case state < Open || state > Unknown:
		return invalid("numbers", "have one without a state")
	case n.GetShared() && state != Unknown:
		return invalid("numbers", "have one that is another key's, and not unknown")
	case state == Unknown && n.GetExpiresUnixNano() != 0:
		return invalid("numbers", "have one that is unknown, and has an end")
	case (n.GetReason() != "") != (state == Voided) || len(n.GetReason()) > MaxReasonBytes || !visible(n.GetReason()):
		return invalid("numbers", "have one with a wrong reason")
	case len(n.GetLabel()) > MaxLabelBytes || !visible(n.GetLabel()):
		return invalid("numbers", "have one with a wrong label")
	case key == "" && state != Released && state != Voided && !n.GetShared():
		return invalid("numbers", "have one without a key")
	case key == "":
		return nil
	case !n.GetShared() && keys[key]:
		return invalid("keys", "are known already")
	}
	keys[key] = keys[key] || !n.GetShared()
	return checkKey(key)
}

// PutLost adds a key of a frozen series whose number was given to another, unless the
// series knows the key. The error is *Error.
func (s *Series) PutLost(m *raftlogv1.SeriesLostRecord) error {
	if m.GetNumber() < 1 || m.GetNumber() > s.most() {
		return invalid("number", "is out of range")
	}
	if err := checkKey(m.GetKey()); err != nil {
		return err
	}
	if !s.Knows(m.GetKey()) {
		s.lose(m.GetKey(), lostKey{number: m.GetNumber(), released: m.GetReleased()})
	}
	return nil
}
