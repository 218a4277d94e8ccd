package commit

// sessionWindow is how far the state machine lets a group's number be ahead of what its
// origin acknowledged, with this group or an earlier one.
const sessionWindow = 64

// session numbers the groups of one session. It has no lock: the Gatherer's
// guards it.
//
// Invariant: next only rises, so that a sequence number never names two groups.
// Invariant: acknowledged is below every number that is not settled.
type session struct {
	number uint64
	origin []byte
	// next is the sequence number of the next group.
	next uint64
	// open holds the numbers that are given out and not settled, in ascending order; at
	// most MaxInFlight.
	open []uint64
}

func newSession(number uint64, origin []byte) *session {
	return &session{number: number, origin: origin, next: 1}
}

// acknowledged returns the number up to which every group is settled.
func (s *session) acknowledged() uint64 {
	if len(s.open) > 0 {
		return s.open[0] - 1
	}
	return s.next - 1
}

// take gives out the next number.
func (s *session) take() uint64 {
	n := s.next
	s.next++
	s.open = append(s.open, n)
	return n
}

// settle marks the group as settled: it was answered or given up.
func (s *session) settle(sequence uint64) {
	for i, n := range s.open {
		if n == sequence {
			s.open = append(s.open[:i], s.open[i+1:]...)
			return
		}
	}
}

// full reports whether the next group would be too far ahead of an old one that is not
// settled.
func (s *session) full() bool { return s.next-s.acknowledged() > sessionWindow }
