package series

import raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"

// NewFromBackup returns the series of a backup, suspended and without numbers. Its errors are Restore's.
func NewFromBackup(b *raftlogv1.SeriesRecord) (*Series, error) {
	if b.GetVersion() >= maxVersion {
		return nil, invalid("version", "is out of range")
	}
	r := rulesOf(b)
	r.suspended, r.forgetting, r.voidedUntil = true, 0, 0
	return restore(r)
}

// Merge merges a series of a backup into this one; its numbers follow. The newest definition wins.
//
// Of two series of one name that began at different times, such as before and after a
// definition that forgot all numbers, the one with final numbers stays, or else the newer
// one. If both have some, or this one has gone on, they are two series. More means that the series is being
// suspended, and that the call is to be repeated. The errors are *Error and those of format.Define.
func (s *Series) Merge(b *raftlogv1.SeriesRecord) (more bool, err error) {
	other, err := NewFromBackup(b)
	if err != nil {
		return false, err
	}
	otherSeries := func() error {
		return differs("it is another series than that of the backup: here of the format %q, there %q",
			s.definition.Format, other.definition.Format)
	}
	switch {
	case other.since == s.since && (other.definition.renumbers(s.definition) || other.secret != s.secret):
		return false, otherSeries()
	case other.since == s.since:
		if other.version > s.version {
			if s.suspendSome(forgottenAtOnce) {
				return true, nil
			}
			s.definition, s.version = other.definition, other.version
		}
		s.advance(other.now)
	case s.final(MaxScopes) && b.GetFinal(), !s.replaceable() && (b.GetFinal() || other.since > s.since):
		return false, otherSeries()
	case !s.final(MaxScopes) && (b.GetFinal() || other.since > s.since):
		*s = *other
	}
	return false, nil
}

// final reports whether a number of the first limit scopes is confirmed or voided.
func (v *View) final(limit int) bool {
	for c := range v.scopes.from(0) {
		if limit--; limit < 0 {
			return false
		}
		if count, _ := v.count(c); count[Confirmed]+count[Voided] > 0 {
			return true
		}
	}
	return false
}

// replaceable reports whether the series has given nothing since it was restored.
func (v *View) replaceable() bool {
	if v.suspended {
		return true
	}
	for c := range v.scopes.from(0) {
		if !c.empty() {
			return false
		}
	}
	return true
}

// left returns what is known of a number of a backup later: nothing, if it has no last state. The
// origin is that of the backup's series as a whole: its numbers may come in any order.
func left(o *raftlogv1.SeriesOrigin, r record) record {
	switch {
	case r.state == Open && r.ended(o.GetVoidedByUnixNano()):
		r.state = Voided
		r.write(r.key(), r.label(), ReasonExpired)
	case r.state == Released && o.GetReleasedVoided():
		r.state = Voided
		r.write(r.key(), r.label(), ReasonReleased)
	case r.state == Open || r.state == Released:
		r.state, r.expires, r.shared = Unknown, 0, !o.GetKeysStay() || r.key() == ""
	}
	return r
}

// MergeNumbers merges numbers of a backup, or none of them. A number gets the state that is
// known last: unknown, then the one that its key has kept, then voided or confirmed. The
// series is suspended if that changes it. Numbers of a series that began at another time are
// passed over. More means that nothing is merged yet, because the series is being suspended, and that the
// call is to be repeated. The errors are *Error and *format.Error.
func (s *Series) MergeNumbers(p *raftlogv1.SeriesNumbersRecord) (more bool, err error) {
	if p.GetOrigin().GetSinceUnixNano() != s.since {
		return false, nil
	}
	c, err := s.scopeOf(p.GetScope())
	if err != nil {
		return false, err
	}
	m := &merging{Series: s, scope: c, piece: p}
	numbers, err := s.recordsOf(c, p)
	if err != nil {
		return false, err
	}
	if err := m.compare(numbers); err != nil || !m.changes() {
		return false, err
	}
	if s.suspendSome(forgottenAtOnce) {
		return true, nil
	}
	m.carryOut()
	return false, nil
}

// merging is a piece of a backup that is merged.
type merging struct {
	*Series
	scope *scope // As it is before.
	piece *raftlogv1.SeriesNumbersRecord
	// own is the series' origin, once it is needed.
	own *raftlogv1.SeriesOrigin
	// allotted is what the allotments of the scope become.
	allotted *allotments
	// taken has the numbers that change, and what they become.
	taken []mergedNumber
}

type mergedNumber struct {
	number int64
	record record
}

// offset returns the last number from before the scope, as it will be.
func (m *merging) offset() int64 {
	c := m.scope
	if !c.empty() || len(m.piece.GetNumbers()) == 0 && m.scopes.has(c) && m.piece.GetOrigin().GetVersion() < m.version {
		return c.offset
	}
	return offsetOf(m.piece)
}

// compare finds the numbers that change.
func (m *merging) compare(numbers []record) error {
	c, p := m.scope, m.piece
	offset, last := m.offset(), c.last
	if c.empty() {
		last = offset
	}
	var ok bool
	if m.allotted, ok = mergeAllotted(c.allotted, allotmentsOf(p), last, p.GetFirst()+int64(len(numbers))-1); !ok {
		return differs("%s has other allotments in the backup than here", name(p.GetScope()))
	}
	if wrong := m.allotted.wrong(offset, max(last, p.GetFirst()+int64(len(numbers))-1), m.most()); wrong != "" {
		return differs("the allotments of %s, in the backup and here, %s", name(p.GetScope()), wrong)
	}
	switch {
	case len(numbers) == 0:
		return nil
	case offset != offsetOf(p):
		return differs("%s begins at %d in the backup, and at %d here", name(p.GetScope()), max(p.GetBegin(), 1), offset+1)
	case p.GetFirst() > last+1:
		return invalid("numbers", "do not follow those before them")
	}
	for i, n := range numbers {
		number, n := p.GetFirst()+int64(i), left(p.GetOrigin(), n)
		mine := record{}
		if number <= min(last, c.last) {
			mine = m.mine(c.at(number))
		}
		switch known := newest(&mine, &n); {
		case known == differ, known == theirs && m.elsewhere(number, &n):
			return differs("number %d of %s is another one's here than in the backup, where it is that of key %q",
				m.allotted.numberOf(number), name(p.GetScope()), n.key())
		case known == theirs:
			m.taken = append(m.taken, mergedNumber{number, n})
		}
	}
	return nil
}

// mine returns what is left of an own number.
func (m *merging) mine(r *record) record {
	if r.state != Open && r.state != Released {
		return *r
	}
	if m.own == nil {
		m.own = m.origin(func() bool { return m.final(forgottenAtOnce) })
	}
	return left(m.own, *r)
}

// elsewhere reports whether a key has kept another number. One that is unknown, and that the
// key had before, is the key's no more: somebody said so, or it could not take this one.
func (m *merging) elsewhere(number int64, n *record) bool {
	if n.owner() == "" {
		return false
	}
	at := m.index.find(n.key())
	if at == 0 || at == refOf(m.scope.index, number) {
		return false
	}
	_, r := m.record(at)
	other := m.mine(r)
	return other.owner() != "" && (other.state != Unknown || other.taken > n.taken)
}

// known says which of two states of a number is known later.
type known uint8

const (
	mine known = iota
	theirs
	// differ means that they are of two series, or of one that went on in two clusters.
	differ
)

// newest compares an own number with that of a backup; an own one without a state is not
// there. Whenever another key got a number, its time of taking is a later one.
func newest(a, b *record) known {
	switch {
	case a.state == 0:
		return theirs
	case a.state != Unknown && b.state != Unknown:
		if a.state == Voided && b.state == Voided || a.state == b.state && a.key() == b.key() {
			return mine
		}
		return differ
	case a.owner() != "" && b.owner() != "" && a.key() != b.key():
		return differ
	case a.state != Unknown:
		return mine
	case b.state != Unknown:
		if b.taken < a.taken {
			return differ
		}
		return theirs
	case a.shared && !b.shared && b.taken < a.taken:
		return differ
	case a.shared && !b.shared:
		return theirs
	case b.taken > a.taken || b.taken == a.taken && b.shared && a.key() != "" && b.key() == "":
		if a.shared == b.shared {
			return theirs
		}
	}
	return mine
}

func (m *merging) changes() bool {
	c := m.scope
	return len(m.taken) > 0 || m.piece.GetClosed() && !c.closed || !m.scopes.has(c) || c.offset != m.offset() ||
		!m.allotted.equal(c.allotted)
}

func (m *merging) carryOut() {
	offset := m.offset()
	c := m.scopes.begin(m.scope)
	if c.empty() {
		c.moveTo(offset)
	}
	if !m.allotted.equal(c.allotted) {
		c.setAllotments(m.allotted)
	}
	for i := range m.taken {
		m.replace(c, m.taken[i].number, &m.taken[i].record)
	}
	if m.piece.GetClosed() {
		c.close()
	}
}

// replace gives a number another state, or adds it behind the last one. Another number of its key
// has no certain owner any more.
func (m *merging) replace(c *scope, number int64, r *record) {
	if at := m.index.find(r.owner()); at != 0 && at != refOf(c.index, number) {
		m.index.drop(r.owner())
		m.scopes.own(at.scope()).change(at.number(), func(r *record) { r.shared = true })
	}
	if number > c.last {
		number = c.add()
	} else if own := c.at(number).owner(); own != "" {
		m.index.drop(own)
	}
	m.store(c, number, r)
}
