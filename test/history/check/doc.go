// Package check judges histories: it says whether what the callers of a cluster
// saw can have come from one that keeps its promises, and if not, which calls
// say so and why.
//
// Each rule has a name. A violation is certain: no order of the calls that
// agrees with their times explains the answers. What a checker cannot decide it
// reports as undecided, which is a failure too: a run that cannot be judged
// proves nothing.
//
//	malformed   a line that no recorder writes, or a failure that is no certain one
//	requests    one request id: one answer, counted once
//	identities  per (database, name): see identities
//	hilo        per (database, tag): see hiloCounter
//	etags       per (database, node tag): see etagCounter
//	workers     per (database, pool): see workerPool
//	tags        a node tag belongs to one node id permanently, and the other way round
//	quorum      no success without a quorum; the right code; the longest answer
//	porcupine   identities, HiLo tags and ids are linearizable, by another checker; see linearizer
//	hashes      the state hash is the same on every node at the same log index
//
// The time is O(n log n) and the memory about 50 bytes for a call without
// request id that took one block; a call with one is kept whole until the end,
// because its tries can be far apart.
//
// Nothing here is shared with the product.
package check
