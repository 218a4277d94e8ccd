package reserve

import (
	"math"
	"time"

	"github.com/idnode/idnode/hilo"
)

// key names a tag; both are folded.
type key struct{ database, tag string }

// piece is a range that the cluster granted to this node. The numbers from next on were not
// given to any caller.
type piece struct {
	hilo.Range
	next  int64
	token uint64
}

func (p piece) left() int64 { return p.High - p.next + 1 }

// tagState is the reserve of one tag, and the record of its use.
type tagState struct {
	key
	// principal is the principal of the last caller who took a range; grants are requested on
	// its behalf. Nil if operations carry no principal.
	principal *string
	// refused means that the cluster refused a grant since that caller's range.
	refused bool
	// first and last are when the first and the last range were taken.
	first, last time.Time
	// begin is when the present window began; taken is the count of numbers taken in it,
	// before that of the previous window.
	begin         time.Time
	taken, before int64
	// greatest is the greatest number of all ranges taken.
	greatest int64
	// discarded is below every number that may be given.
	discarded int64
	// pieces are in the order of their grants.
	pieces []piece
}

func (h *tagState) count(now time.Time, window time.Duration, numbers int64) {
	h.roll(now, window)
	h.last = now
	h.taken = min(h.taken, MaxNumbers) + min(numbers, MaxNumbers)
}

// roll begins a new window if the present window is over.
func (h *tagState) roll(now time.Time, window time.Duration) {
	switch over := now.Sub(h.begin); {
	case over < window:
	case over < 2*window:
		h.begin, h.before, h.taken = h.begin.Add(window), h.taken, 0
	default:
		h.begin, h.before, h.taken = now, 0, 0
	}
}

// use returns the count of numbers used in a window; 0 for a tag that is not used steadily.
// The first window is extrapolated.
func (h *tagState) use(now time.Time, window time.Duration) int64 {
	if h.last.Sub(h.first) < min(window/10, steadyFor) {
		return 0
	}
	h.roll(now, window)
	use := max(h.before, h.taken)
	if since := now.Sub(h.first); since < window {
		use = int64(float64(h.taken) * float64(window) / float64(since))
	}
	return max(use, hilo.MinSize)
}

func (h *tagState) need(now time.Time, window time.Duration) int64 {
	return min(h.use(now, window), MaxNumbers/2)
}

func (h *tagState) left() (n int64) {
	for _, p := range h.pieces {
		n += p.left()
	}
	return n
}

// take takes up to size consecutive numbers of the oldest piece. There must be a piece.
func (h *tagState) take(size int64) hilo.Range {
	p := &h.pieces[0]
	r := hilo.Range{Low: p.next, High: p.next + min(size, p.left()) - 1}
	p.next = r.High + 1
	if p.left() == 0 {
		h.pieces = h.pieces[1:]
	}
	return r
}

func (h *tagState) discard(upTo int64) {
	kept := h.pieces[:0]
	for _, p := range h.pieces {
		if p.High <= upTo {
			continue
		}
		p.next = max(p.next, upTo+1)
		kept = append(kept, p)
	}
	h.pieces = kept
	if upTo < math.MaxInt64 {
		h.discarded = max(h.discarded, upTo)
	}
}
