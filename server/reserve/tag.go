package reserve

import (
	"math"
	"time"

	"github.com/idnode/idnode/hilo"
)

// key names a tag; both are folded.
type key struct{ database, tag string }

// piece is a range that the cluster granted to this node, of which the numbers from next
// on were given to nobody.
type piece struct {
	hilo.Range
	next  int64
	token uint64
}

func (p piece) left() int64 { return p.High - p.next + 1 }

// tagState is the reserve of one tag, and its use.
type tagState struct {
	key
	// principal is that of the last caller who took a range, in whose name more is asked
	// for; nil where operations carry none.
	principal *string
	// refused says that the cluster refused a grant since that caller's range.
	refused bool
	// first and last are when the first and the last range were taken.
	first, last time.Time
	// begin is when the present window began; taken are the numbers taken in it, before
	// those in the window before.
	begin         time.Time
	taken, before int64
	// greatest is the greatest number of a range that was taken.
	greatest int64
	// discarded is below every number that may be given.
	discarded int64
	// pieces are in the order in which they were granted.
	pieces []piece
}

// count counts a range that was taken.
func (h *tagState) count(now time.Time, window time.Duration, numbers int64) {
	h.roll(now, window)
	h.last = now
	h.taken = min(h.taken, MaxNumbers) + min(numbers, MaxNumbers)
}

// roll begins a new window where the present one is over.
func (h *tagState) roll(now time.Time, window time.Duration) {
	switch over := now.Sub(h.begin); {
	case over < window:
	case over < 2*window:
		h.begin, h.before, h.taken = h.begin.Add(window), h.taken, 0
	default:
		h.begin, h.before, h.taken = now, 0, 0
	}
}

// use is how many numbers the tag's use takes in a window; 0 for a tag that is not used
// steadily. In the first window it goes on as it began.
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

// need is how many numbers there should be.
func (h *tagState) need(now time.Time, window time.Duration) int64 {
	return min(h.use(now, window), MaxNumbers/2)
}

// left is how many numbers are there to give.
func (h *tagState) left() (n int64) {
	for _, p := range h.pieces {
		n += p.left()
	}
	return n
}

// take takes up to size successive numbers of the oldest piece; there must be one.
func (h *tagState) take(size int64) hilo.Range {
	p := &h.pieces[0]
	r := hilo.Range{Low: p.next, High: p.next + min(size, p.left()) - 1}
	p.next = r.High + 1
	if p.left() == 0 {
		h.pieces = h.pieces[1:]
	}
	return r
}

// discard gives up the numbers up to upTo.
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
