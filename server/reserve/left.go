package reserve

import "time"

// Left is the rest of one tag's reserve.
type Left struct {
	// Database and Tag are folded.
	Database, Tag string
	Numbers       int64
	// Lasts is how long the numbers last at the present rate.
	Lasts time.Duration
}

// Total is the rest of all tags' reserves.
type Total struct {
	// Tags is the number of tags that have numbers, or should have.
	Tags    int
	Numbers int64
	// Lasts is that of the tag that runs out first; For if there is no tag. For is the
	// least it should be.
	Lasts, For time.Duration
}

// Short reports whether a tag has less than half of its target. A node that is cut off gets
// there; with a quorum it means that the cluster refuses further grants, or that the tag is
// used faster than the largest reserve allows.
func (t *Total) Short() bool { return t != nil && t.Lasts < t.For/2 }

// Left returns the rest of each tag that has numbers, or should have, in any order. It is
// empty for the only member, which needs no reserve, and for the nil Keeper.
func (k *Keeper) Left() (all []Left) {
	if k == nil || !k.hasOthers() {
		return nil
	}
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for t, e := range k.tags {
		h := e.Value.(*tagState)
		numbers, use := h.left(), h.use(now, k.cfg.For)
		if use == 0 {
			continue // No numbers may be given.
		}
		lasts := float64(k.cfg.For) * float64(numbers) / float64(use)
		all = append(all, Left{t.database, t.tag, numbers, time.Duration(lasts)})
	}
	return all
}

// Total returns the sum of Left; nil for the nil Keeper.
func (k *Keeper) Total() *Total {
	if k == nil {
		return nil
	}
	total := &Total{Lasts: k.cfg.For, For: k.cfg.For}
	for _, l := range k.Left() {
		if total.Tags == 0 || l.Lasts < total.Lasts {
			total.Lasts = l.Lasts
		}
		total.Tags++
		total.Numbers += l.Numbers
	}
	return total
}
