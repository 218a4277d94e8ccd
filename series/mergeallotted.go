package series

import "slices"

// mergeAllotted merges the allotments of a backup into those of a scope with a last place: those that were changed most
// often win. Of the backup only places up to an end are there yet, so that only what began with them has begun.
// It returns false if the two are of a series that went on in two clusters: what began in one is not in the other,
// or at another place.
func mergeAllotted(mine, theirs *allotments, last, end int64) (merged *allotments, ok bool) {
	if theirs == nil && mine == nil {
		return nil, true
	}
	mine, theirs = mine.upTo(last), theirs.upTo(end)
	newer := mine
	switch {
	case theirs.changes > mine.changes:
		newer = theirs
	case theirs.changes == mine.changes && !slices.EqualFunc(theirs.ranges, mine.ranges, allotment.same):
		return nil, false
	}
	merged = newer.upTo(0) // Those that began do so where they began, by adopt.
	return merged, merged.adopt(mine, theirs, end) && merged.adopt(theirs, mine, last)
}

// upTo returns a copy of allotments of which those that began behind a place did not begin; none of nil.
func (a *allotments) upTo(end int64) *allotments {
	if a == nil {
		return &allotments{}
	}
	own := &allotments{slices.Clone(a.ranges), a.changes}
	for i := range own.ranges {
		if own.ranges[i].starts > end {
			own.ranges[i].starts = 0
		}
	}
	return own
}

// adopt has allotments begin where they began in one series. It returns false if that cannot be, because the other one
// has numbers up to a place.
func (a *allotments) adopt(one, other *allotments, last int64) bool {
	for _, r := range one.ranges {
		if !r.began() {
			continue
		}
		i := slices.IndexFunc(a.ranges, r.same)
		if i < 0 || r.starts <= last && !slices.Contains(other.ranges, r) {
			return false
		}
		a.ranges[i].starts = r.starts
	}
	return true
}
