package commit

// Session numbers the groups of one session, of which one is in flight at a time. It is a
// comparable value, without lock, clock or network: the group sender alone uses it, and an
// exploration copies sessions into each world.
//
// Invariant: next only rises, so that a sequence number never names two groups.
type Session struct {
	number uint64
	// next is the sequence number of the next group.
	next uint64
}

// NewSession returns the session that an announcement at log index number has opened.
func NewSession(number uint64) Session { return Session{number: number, next: 1} }

// Cut returns a group with the next sequence number. All groups before it must be settled.
func (s *Session) Cut() Group {
	g := Group{session: s.number, sequence: s.next}
	s.next++
	return g
}
