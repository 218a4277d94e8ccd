package etag

// CeilingStep is the step in which the cluster's ceilings rise. One log entry
// then covers about a million etags of a database.
const CeilingStep uint64 = 1 << 20

// maxLead bounds how far a ceiling requested by NextCeiling can be ahead of the reserved
// value it was requested for.
const maxLead = 2 * CeilingStep

// NextCeiling reports whether to ask the cluster for a new ceiling, and which. reserved is
// the end of the reserved block, ceiling the present ceiling (0 if there is none). The
// present ceiling is kept while it is ahead of reserved by half a step; a new ceiling is a
// multiple of the step, one to two steps ahead, or MaxEtag.
func NextCeiling(reserved, ceiling uint64) (next uint64, ask bool) {
	reserved = min(reserved, MaxEtag)
	if ceiling >= MaxEtag || ceiling >= reserved+CeilingStep/2 {
		return ceiling, false
	}
	next = (reserved/CeilingStep + 2) * CeilingStep
	return min(next, MaxEtag), true
}
