package raftguard

// MaxAppendEntries is the largest number of entries of one message between nodes. It exceeds
// the number of proposals in flight: the library leaves further entries for the next proposal
// or the commit timeout, so that a burst would be cut and left waiting. This number of entries
// of full size stays below 10 MB.
const MaxAppendEntries = 64
