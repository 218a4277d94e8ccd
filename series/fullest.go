package series

import "github.com/idnode/idnode/series/format"

// Fullest returns the greatest share that is used of what a series may have: keys, scopes, or the numbers of a
// scope in which a date is. It looks at limit scopes from one on for more than most, and reports whether there are others.
func (v *View) Fullest(date format.Date, from, limit int, most float64) (share float64, more bool) {
	share = max(most, float64(v.scopes.len())/MaxScopes)
	if v.definition.MaxKeys > 0 {
		known, _ := v.Keys()
		share = max(share, float64(known)/float64(v.definition.MaxKeys))
	}
	for c := range v.scopes.from(from) {
		if limit--; limit < 0 {
			return share, true
		}
		if used := v.used(c, date); used > share && !c.closed && v.dated(c, date) {
			share = used
		}
	}
	return share, false
}

// used returns the share of a scope's numbers that is used, or of those that its allotments have today.
func (v *View) used(c *scope, today format.Date) float64 {
	if !c.allotted.none() {
		left, of := c.supply(today)
		return 1 - float64(left)/float64(max(1, of))
	}
	most := max(1, c.last, v.definition.most(v.format, c.given())) // A length that was lowered may leave less.
	return float64(c.last) / float64(most)
}
