package series

// Origin says of which state the pieces of a backup are. The backup's series as a whole
// decides what became of its numbers, and its pieces may come in any order.
type Origin struct {
	// Since is when the numbers of the series began, and Version that of its definition.
	Since, Version int64
	// VoidedBy is until when the time of an open number that is voided has ended.
	VoidedBy int64
	// ReleasedVoided means that released numbers are voided.
	ReleasedVoided bool
	// KeysStay means that no other key can have got an open number since.
	KeysStay bool
}

// Backup is a series of a backup, without its numbers.
type Backup struct {
	Definition Definition
	// Version is that of the definition, and Since when the numbers began.
	Version, Since int64
	// Now is the newest time of a call.
	Now int64
	// Final means that a number is confirmed or voided.
	Final bool
}

// New returns the series of a backup, suspended and still without numbers. The errors are
// those of Restore.
func (b Backup) New() (*Series, error) {
	if b.Version >= maxVersion {
		return nil, &InvalidError{Field: "version", Detail: "is out of range"}
	}
	return Restore(b.Definition, b.Version, b.Since, true, b.Now, 0)
}

// Merge merges a series of a backup into this one; its pieces follow. The newest definition
// wins.
//
// Of two series of one name that began at different times, such as before and after a
// definition that forgot all numbers, the one with final numbers stays, or else the newer
// one. If both have some, or this one has gone on, they are two series. The errors are those
// of New, and *DiffersError.
func (s *Series) Merge(b Backup) error {
	other, err := b.New()
	if err != nil {
		return err
	}
	switch {
	case b.Since == s.since && b.Definition.renumbers(s.definition):
		return &DiffersError{Format: s.definition.Format, BackupFormat: b.Definition.Format}
	case b.Since == s.since:
		if b.Version > s.version {
			s.Suspend()
			s.definition, s.version = b.Definition, b.Version
		}
		s.advance(b.Now)
		return nil
	case s.final() && b.Final, !s.replaceable() && (b.Final || b.Since > s.since):
		return &DiffersError{Format: s.definition.Format, BackupFormat: b.Definition.Format}
	case !s.final() && (b.Final || b.Since > s.since):
		s.clear()
		s.format, s.definition, s.version, s.since = other.format, b.Definition, b.Version, b.Since
		s.now, s.voidedUntil, s.suspended = b.Now, 0, true
	}
	return nil
}

// final reports whether a number is confirmed or voided.
func (s *Series) final() bool {
	for c := range s.scopes.from(0) {
		if count, _ := s.count(c, s.now); count[Confirmed]+count[Voided] > 0 {
			return true
		}
	}
	return false
}

// replaceable reports whether the series has given nothing since it was restored.
func (s *Series) replaceable() bool {
	if s.suspended {
		return true
	}
	for c := range s.scopes.from(0) {
		if !c.empty() {
			return false
		}
	}
	return true
}

// origin is that of the series itself. final reports whether a number is confirmed or voided.
func (s *Series) origin(final func() bool) Origin {
	return Origin{
		Since: s.since, Version: s.version, VoidedBy: s.voidedBy(s.now),
		ReleasedVoided: s.definition.OnRelease == ReleaseVoids, KeysStay: s.keepsKeys(final),
	}
}

// left returns what is known of a number later: nothing, if it has no last state.
func (o Origin) left(n Stored) Stored {
	switch {
	case n.State == Open && n.Expires != 0 && n.Expires <= o.VoidedBy:
		n.State, n.Reason = Voided, ReasonExpired
	case n.State == Released && o.ReleasedVoided:
		n.State, n.Reason = Voided, ReasonReleased
	case n.State == Open || n.State == Released:
		n.State, n.Expires, n.Shared = Unknown, 0, !o.KeysStay || n.Key == ""
	}
	return n
}

// MergeNumbers merges a piece of a backup, or nothing of it. A number gets the state that is
// known last: unknown, then the one that its key has kept, then voided or confirmed. The
// series is suspended if that changes it. A piece of a series that began at another time is
// passed over. The errors are *InvalidError, *format.Error and *DiffersError.
func (s *Series) MergeNumbers(p Piece, o Origin) error {
	if o.Since != s.since {
		return nil
	}
	c, err := s.scopeOf(p.Scope)
	if err != nil {
		return err
	}
	m := &merging{series: s, scope: c, piece: &p, origin: o}
	if err := p.check(s, c); err != nil {
		return err
	}
	if err := m.compare(); err != nil {
		return err
	}
	if m.changes() {
		m.carryOut()
	}
	return nil
}

// merging is a piece that is merged.
type merging struct {
	series *Series
	scope  *scope // As it is before.
	piece  *Piece
	origin Origin
	// own is the series' origin, once it is needed.
	own *Origin
	// taken has the numbers that change, and what they become.
	taken []mergedNumber
}

type mergedNumber struct {
	number int64
	stored Stored
}

// offset returns the last number from before the scope, as it will be.
func (m *merging) offset() int64 {
	c, p := m.scope, m.piece
	if !c.empty() || len(p.Numbers) == 0 && c.index < m.series.scopes.len && m.origin.Version < m.series.version {
		return c.offset
	}
	return p.offset()
}

// compare finds the numbers that change.
func (m *merging) compare() error {
	c, p := m.scope, m.piece
	offset, last := m.offset(), c.last
	if c.empty() {
		last = offset
	}
	switch {
	case len(p.Numbers) == 0:
		return nil
	case offset != p.offset():
		return &DiffersError{Scope: p.Scope, Begins: offset + 1, BackupBegins: max(p.Begin, 1)}
	case p.First > last+1:
		return &InvalidError{Field: "numbers", Detail: "do not follow those before them"}
	}
	for i, n := range p.Numbers {
		number, n := p.First+int64(i), m.origin.left(n)
		mine := Stored{}
		if number <= last {
			mine = m.mine(c.at(number))
		}
		switch known := newest(mine, n); {
		case known == differ, known == theirs && m.elsewhere(number, &n):
			return &DiffersError{Scope: p.Scope, Number: number, Key: n.Key}
		case known == theirs:
			m.taken = append(m.taken, mergedNumber{number, n})
		}
	}
	return nil
}

// mine returns what is left of an own number.
func (m *merging) mine(r *record) Stored {
	if r.state != Open && r.state != Released {
		return r.stored()
	}
	return m.ownOrigin().left(r.stored())
}

func (m *merging) ownOrigin() Origin {
	if m.own == nil {
		own := m.series.origin(m.series.final)
		m.own = &own
	}
	return *m.own
}

// elsewhere reports whether a key has kept another number. One that is unknown, and that the
// key had before, is the key's no more: somebody said so, or it could not take this one.
func (m *merging) elsewhere(number int64, n *Stored) bool {
	if n.owner() == "" {
		return false
	}
	at := m.series.index.find(n.Key)
	if at == 0 || at == refOf(m.scope.index, number) {
		return false
	}
	other := m.mine(m.series.scopes.at(at.scope()).at(at.number()))
	return other.owner() != "" && (other.State != Unknown || other.Taken > n.Taken)
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
func newest(a, b Stored) known {
	switch {
	case a.State == 0:
		return theirs
	case a.State != Unknown && b.State != Unknown:
		if a.State == Voided && b.State == Voided || a.State == b.State && a.Key == b.Key {
			return mine
		}
		return differ
	case a.owner() != "" && b.owner() != "" && a.Key != b.Key:
		return differ
	case a.State != Unknown:
		return mine
	case b.State != Unknown:
		if b.Taken < a.Taken {
			return differ
		}
		return theirs
	case a.Shared && !b.Shared && b.Taken < a.Taken:
		return differ
	case a.Shared && !b.Shared:
		return theirs
	case b.Taken > a.Taken || b.Taken == a.Taken && b.Shared && a.Key != "" && b.Key == "":
		if a.Shared == b.Shared {
			return theirs
		}
	}
	return mine
}

func (m *merging) changes() bool {
	c := m.scope
	return len(m.taken) > 0 || m.piece.Closed && !c.closed || c.index == m.series.scopes.len || c.offset != m.offset()
}

func (m *merging) carryOut() {
	s, offset := m.series, m.offset()
	s.Suspend()
	s.begin(m.scope)
	c := s.scopes.own(m.scope.index)
	if c.empty() {
		c.moveTo(offset)
	}
	for _, n := range m.taken {
		s.replace(c, n.number, &n.stored)
	}
	if m.piece.Closed {
		c.close()
	}
}

// replace gives a number another state, or adds it behind the last one.
func (s *Series) replace(c *scope, number int64, n *Stored) {
	s.disown(n.owner(), refOf(c.index, number))
	if number > c.last {
		number = c.add()
	} else if own := c.at(number).owner(); own != "" {
		s.index.drop(own)
	}
	s.store(c, number, n)
}

// disown leaves open whose another number of a key is.
func (s *Series) disown(key string, keeps ref) {
	at := s.index.find(key)
	if at == 0 || at == keeps {
		return
	}
	s.index.drop(key)
	s.scopes.own(at.scope()).change(at.number(), func(r *record) { r.shared = true })
}
