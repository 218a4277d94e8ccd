package commit

// sessionWindow is how far the state machine lets a group's sequence number be ahead of the
// number acknowledged by its origin, with this group or an earlier one.
const sessionWindow = 64

// Session numbers the groups of one session. It is a comparable value, without lock, clock
// or network: the Gatherer's lock guards the session in use, and an exploration copies
// sessions into each world.
//
// Invariant: next only rises, so that a sequence number never names two groups.
// Invariant: the acknowledged number is below every number that is not settled.
type Session struct {
	number uint64
	// next is the sequence number of the next group.
	next uint64
	// open holds the numbers in use that are not settled, in ascending order, followed by
	// zeros.
	open [MaxInFlight]uint64
}

// NewSession returns the session that an announcement at log index number has opened.
func NewSession(number uint64) Session { return Session{number: number, next: 1} }

// Cut returns a group with the next sequence number. The session must not be Full.
func (s *Session) Cut() Group {
	g := Group{session: s.number, sequence: s.next}
	s.next++
	for i, n := range s.open {
		if n == 0 {
			s.open[i] = g.sequence
			break
		}
	}
	g.acknowledged = s.acknowledged()
	return g
}

// acknowledged returns the number up to which every group is settled.
func (s *Session) acknowledged() uint64 {
	if s.open[0] > 0 {
		return s.open[0] - 1
	}
	return s.next - 1
}

// Settle marks a group as settled: it was answered or given up.
func (s *Session) Settle(g Group) {
	for i, n := range s.open {
		if n == g.sequence {
			copy(s.open[i:], s.open[i+1:])
			s.open[MaxInFlight-1] = 0
			return
		}
	}
}

// Full reports whether the next group would be too far ahead of an unsettled group, or
// exceed MaxInFlight unsettled groups.
func (s *Session) Full() bool {
	return s.next-s.acknowledged() > sessionWindow || s.open[MaxInFlight-1] > 0
}
