package raftguard

// MaxAppendEntries is how many entries one message between nodes carries. It exceeds the
// number of proposals in flight: the library leaves what is beyond it for the next proposal
// or the commit timeout, so that a burst would be cut and left waiting. Entries of a full
// size times it stay below 10 MB.
const MaxAppendEntries = 64
