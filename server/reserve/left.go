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

// Left returns what is left of each tag that has numbers, or should have, in any order. A
// node that is the only member should have none.
func (k *Keeper) Left() (all []Left) {
	if !k.hasOthers() {
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

// Total sums up what is left.
func (k *Keeper) Total() Total {
	total := Total{Lasts: k.cfg.For, For: k.cfg.For}
	for _, l := range k.Left() {
		if total.Tags == 0 || l.Lasts < total.Lasts {
			total.Lasts = l.Lasts
		}
		total.Tags++
		total.Numbers += l.Numbers
	}
	return total
}
