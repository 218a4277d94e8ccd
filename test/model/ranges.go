package model

import (
	"fmt"
	"slices"
)

// Ranges judges what the cluster does with one HiLo tag: the rules of spec/hilo.pml. The
// zero value is a tag of which nothing was issued.
type Ranges struct {
	// taken is up to where a merge or a set said that all numbers are in use.
	taken int64
	// peak is the greatest number that any range ended at.
	peak int64
	held []heldRange
}

// heldRange is a range of a caller.
type heldRange struct {
	low, high int64
	// used is the last number that the caller may have: the rest came back.
	used  int64
	token uint64
	back  bool
}

// Issue has a caller get a range. It knows of a number that is taken.
func (r *Ranges) Issue(low, high, known int64, token uint64) error {
	switch {
	case low > high:
		return fmt.Errorf("issues a range from %d to %d", low, high)
	case low <= max(r.taken, known):
		return fmt.Errorf("issues %d to %d, and %d is taken", low, high, max(r.taken, known))
	case high <= r.peak:
		return fmt.Errorf("issues %d to %d, and a range ended at %d before", low, high, r.peak)
	}
	if err := r.free(low, high); err != nil {
		return err
	}
	r.peak = high
	r.held = append(r.held, heldRange{low: low, high: high, used: high, token: token})
	return nil
}

// free reports numbers that a caller may have.
func (r *Ranges) free(low, high int64) error {
	for _, h := range r.held {
		if low <= h.used && h.low <= high {
			return fmt.Errorf("issues %d to %d, and a caller has %d to %d", low, high, h.low, h.used)
		}
	}
	return nil
}

// Return has the numbers of a range above last come back. A caller of RavenDB's calls gives
// no token, and 0 for low.
func (r *Ranges) Return(low, high, last int64, token uint64, checked bool) error {
	i := slices.IndexFunc(r.held, func(h heldRange) bool { return h.high == high && !h.back })
	if i < 0 {
		return fmt.Errorf("takes back a range up to %d, which nobody holds", high)
	}
	switch h := &r.held[i]; {
	case low != 0 && low != h.low, checked && token != h.token:
		return fmt.Errorf("takes back %d to %d by a caller who does not hold it", h.low, h.high)
	case last < h.low-1 || last > h.high:
		return fmt.Errorf("takes back what is above %d of %d to %d", last, h.low, h.high)
	case last < h.low:
		r.held = slices.Delete(r.held, i, i+1)
	default:
		h.used, h.back = last, true
	}
	return nil
}

// Set has a caller own the numbers above the ones that it expected, up to a value.
func (r *Ranges) Set(value, expected int64) error {
	if value > expected {
		if err := r.free(max(expected, r.taken)+1, value); err != nil {
			return err
		}
	}
	r.Raise(value, value)
	return nil
}

// Raise has all numbers up to a value in use, and a range end at peak.
func (r *Ranges) Raise(value, peak int64) {
	r.taken, r.peak = max(r.taken, value), max(r.peak, value, peak)
	r.held = slices.DeleteFunc(r.held, func(h heldRange) bool { return h.used <= r.taken })
}
