package history

import "math"

// Kind says what an Op is.
type Kind string

// The kinds of calls, and after Other the kinds of events.
const (
	// Next takes values of an identity.
	Next Kind = "next"
	// Seed moves the last value of an identity.
	Seed Kind = "seed"
	// Get reads the last value of an identity.
	Get Kind = "get"
	// Delete hides an identity or, with Forget, removes it.
	Delete Kind = "delete"
	// Claim takes an id.
	Claim Kind = "claim"
	// Release gives a claimed id free.
	Release Kind = "release"
	// Range reserves a HiLo range.
	Range Kind = "range"
	// Return gives the rest of a HiLo range back.
	Return Kind = "return"
	// Set raises the Max of a HiLo tag if it is the expected one.
	Set Kind = "set"
	// Merge raises the Max of a HiLo tag to at least a value: an import.
	Merge Kind = "merge"
	// Use is a client's use of numbers of a range it holds.
	Use Kind = "use"
	// Etag takes server-side ids of one node.
	Etag Kind = "etag"
	// Take gives a document's key its number in a series.
	Take Kind = "take"
	// End confirms or voids a key's number.
	End Kind = "end"
	// Find reads a key's number.
	Find Kind = "find"
	// Lease leases a worker of a pool, with a window of time.
	Lease Kind = "lease"
	// Renew moves the end of a lease's window.
	Renew Kind = "renew"
	// Free gives the rest of a lease's window back.
	Free Kind = "free"
	// Make is a client's making of Snowflake ids in a lease's window.
	Make Kind = "make"
	// Evict takes a worker from whoever has a lease of it.
	Evict Kind = "evict"
	// Other is a call of which only the time is looked at.
	Other Kind = "other"

	// Member tells which node id has a tag.
	Member Kind = "member"
	// Hash is a node's state hash at a log index.
	Hash Kind = "hash"
	// Lost begins a time without a quorum.
	Lost Kind = "lost"
	// Back ends a time without a quorum.
	Back Kind = "back"
	// Recovered is that survivors go on without the lost majority.
	Recovered Kind = "recovered"
	// Stall is a time in which the machine itself stood still.
	Stall Kind = "stall"
)

// IsCall says whether an Op of this kind is a call to a node, which somebody
// waited for.
func (k Kind) IsCall() bool {
	switch k {
	case Use, Make, Member, Hash, Lost, Back, Recovered, Stall:
		return false
	}
	return true
}

// Outcome is what is known of a call.
type Outcome string

const (
	// OK says that the call took effect before it returned.
	OK Outcome = "ok"
	// Failed says that the call took no effect and never will.
	Failed Outcome = "failed"
	// Unknown says that the call may take effect at any time after its call, or
	// never.
	Unknown Outcome = "unknown"
)

// Never is the Return of a call that did not return.
const Never = math.MaxInt64

// Block is the numbers from First to Last, both included.
type Block struct {
	First, Last int64
}

// Op is one call and its answer, or one event. The package comment has a table
// of the fields that each kind uses.
type Op struct {
	// Kind says what this is.
	Kind Kind `json:"kind"`
	// Client is the caller: one that waits for each call before it makes the next.
	Client int64 `json:"client,omitempty"`
	// Node is the tag of the node asked.
	Node string `json:"node,omitempty"`
	// Database is the folded database; empty is the default one.
	Database string `json:"db,omitempty"`
	// Name is the folded name of the identity, or the folded tag of the HiLo
	// counter.
	Name string `json:"name,omitempty"`
	// Request is the request id of the call; empty for none.
	Request string `json:"request,omitempty"`

	// Call and Return are nanoseconds since the recorder was made. A Return of
	// Never is not written.
	Call   int64 `json:"call"`
	Return int64 `json:"return"`
	// Outcome is what is known of the call.
	Outcome Outcome `json:"outcome"`
	// Code is the reason of a failure, for example NO_QUORUM.
	Code string `json:"code,omitempty"`

	// Count is how many values were asked for; 0 means 1.
	Count int64 `json:"count,omitempty"`
	// Value is what a seed, a set or a merge asks for, and a claim's number.
	Value int64 `json:"value,omitempty"`
	// Expected is the value on which a seed or a set depends; nil for none.
	Expected *int64 `json:"expected,omitempty"`
	// Force makes a seed lower the value too.
	Force bool `json:"force,omitempty"`
	// Forget makes a delete remove the value.
	Forget bool `json:"forget,omitempty"`
	// Stale says that a read need not be linearizable.
	Stale bool `json:"stale,omitempty"`
	// Low and High are a range's first and last number, or a window's first and last time.
	Low  int64 `json:"low,omitempty"`
	High int64 `json:"high,omitempty"`
	// Reserve says that a range is from its node's reserve.
	Reserve bool `json:"reserve,omitempty"`
	// Last is the last number of a range that was used when it was returned, or the time of a
	// window's last id.
	Last int64 `json:"last,omitempty"`
	// ID is a claimed id, a node id or a cluster id.
	ID string `json:"id,omitempty"`

	// Blocks are the numbers taken or used, ascending.
	Blocks []Block `json:"blocks,omitempty"`
	// Result is the counter's value after the call, or the number of a worker.
	Result int64 `json:"result,omitempty"`
	// Returned says that a return was accepted.
	Returned bool `json:"returned,omitempty"`
	// Tag is the node tag that ids are made with, or the token of a lease.
	Tag string `json:"tag,omitempty"`
	// Index is an answer's log index, if it was told; Index and Hash are a log index and the hash of the state there.
	Index uint64 `json:"index,omitempty"`
	Hash  uint64 `json:"hash,omitempty"`
}

// Size is how many numbers the blocks have together.
func Size(blocks []Block) int64 {
	var n int64
	for _, b := range blocks {
		n += b.Last - b.First + 1
	}
	return n
}
