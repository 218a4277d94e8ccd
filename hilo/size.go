package hilo

import "time"

const (
	// busy is the idle time below which a client gets twice as much as before.
	busy = 30 * time.Second
	// slow is the idle time above which it gets half as much.
	slow = 60 * time.Second
)

// NextSize returns the size of a client's next range, from MinSize to MaxSize,
// given the size of its last one and the time since. A client that comes back
// within 30 seconds gets twice as much, one that needs more than a minute gets
// half, everyone else, and a client without a last range, the same again.
//
// Any lastSize will do: a negative one counts as 0, and one above MaxSize is cut
// only after it was halved. A negative idle time (a clock went back) counts as
// none. The rule is that of RavenDB's servers, with the upper limit in every case.
func NextSize(lastSize int64, idle time.Duration, hasLast bool) int64 {
	// Everything above twice the limit counts as that, which cannot overflow.
	size := min(max(lastSize, 0), 2*MaxSize)
	switch {
	case !hasLast:
	case idle < busy:
		size *= 2
	case idle > slow:
		size /= 2
	}
	return min(max(size, MinSize), MaxSize)
}
