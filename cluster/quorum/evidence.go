package quorum

import "time"

const (
	// Tick is how often the evidence is checked.
	Tick = 25 * time.Millisecond
	// minGrace is the lower bound of Grace. A call in flight must learn within 0.6 s that the
	// quorum is gone, on a busy machine too; the evidence is at most one heartbeat old when a
	// link is cut.
	minGrace = 350 * time.Millisecond
)

// Grace returns how old the newest evidence may be with the given lease of a leader. A
// leader's own is always one lease old; the rest is the delay that a busy machine may
// add.
func Grace(lease time.Duration) time.Duration { return max(minGrace, lease*7/4) }

// evidence decides by its age whether a quorum can be reached. It has no clock and no lock.
type evidence struct {
	grace  time.Duration
	newest time.Time
	looked time.Time
}

// look takes the newest evidence and reports whether a quorum counts as in reach. Time
// without calls of look does not count: then this process hardly ran, and could not see
// any evidence.
func (e *evidence) look(now, at time.Time) bool {
	if away := now.Sub(e.looked) - 4*Tick; !e.looked.IsZero() && away > 0 {
		e.newest = e.newest.Add(away)
	}
	e.looked = now
	if at.After(e.newest) {
		e.newest = at
	}
	return !e.newest.IsZero() && now.Sub(e.newest) <= e.grace
}
