package reserve

import "time"

// Left is what is left of one tag.
type Left struct {
	// Database and Tag are folded.
	Database, Tag string
	Numbers       int64
	// Lasts is for how long the numbers last if the tag is used as before.
	Lasts time.Duration
}

// Total is what is left of all tags.
type Total struct {
	// Tags is how many tags have numbers, or should have.
	Tags    int
	Numbers int64
	// Lasts is that of the tag that runs out first; For if there is no tag. For is how
	// long it should be at least.
	Lasts, For time.Duration
}

// Short reports whether a tag has less than half of what it should have. A node that is cut
// off comes there; with a quorum the cluster refuses to grant more, or the tag is used
// faster than a reserve may be large.
func (t *Total) Short() bool { return t != nil && t.Lasts < t.For/2 }

// Left returns what is left of each tag that has numbers, or should have, in any order. A
// node that is the only member should have none. The nil Keeper has none.
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
			continue // Then there are none.
		}
		lasts := float64(k.cfg.For) * float64(numbers) / float64(use)
		all = append(all, Left{t.database, t.tag, numbers, time.Duration(lasts)})
	}
	return all
}

// Total sums up what is left; it is nil of the nil Keeper.
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
