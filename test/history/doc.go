// Package history is the record of what callers of a cluster saw: one Op per
// call, with the times of call and return, what was asked and what came back.
// A history is what the checkers in its folder check judge; the command
// cmd/idcheck judges one that lies in a file.
//
// # The file
//
// A history is written as JSON lines, one Op a line, in the order in which the
// calls ended:
//
//	{"kind":"next","client":3,"node":"A","name":"orders","call":1200,"return":5100,"outcome":"ok","blocks":[[7,7]]}
//	{"kind":"next","client":4,"node":"B","name":"orders","call":1300,"return":9800,"outcome":"unknown","code":"OUTCOME_UNKNOWN"}
//
// Times are nanoseconds since the recorder was made, from its monotonic clock:
// one recorder makes one history, because times of two clocks cannot be
// compared. A call takes effect somewhere between its two times, both included.
//
// # Which kinds there are, and what they fill in
//
//	kind     asks                                        is answered
//	next     name, count (0 is 1)                        blocks
//	seed     name, value, expected, force                result: the last value
//	get      name, stale                                 result: the last value
//	delete   name, forget                                result: the last value
//	claim    id; name and value if it is name/value
//	release  id; name and value if it is name/value
//	range    name, count (0 leaves the size open)        low, high, tag, reserve
//	return   name, low (0 if not told), high, last       returned, result: Max
//	set      name, expected, value                       result: Max
//	merge    name, value
//	use      name, low and high of the range, tag        blocks: the numbers used
//	etag                                                 tag, blocks
//	take     name, id: a document's key                  result: its number, tag: its state
//	end      name, id; tag: confirmed or voided          result: its number
//	find     name, id                                    result: its number, tag: its state
//	lease    name: a pool                                result: the worker, tag: the token, low, high
//	renew    name, tag                                   high
//	free     name, tag, last
//	evict    name, result: the worker
//	make     name, tag                                   result: the worker, low, high, blocks: the ids
//	other    a call of which only the time is looked at
//
// and of what is no call:
//
//	member   the node tag "tag" belongs to the node id "id"
//	hash     node had the state hash "hash" at log index "index", in the cluster "id"
//	lost     node (empty: every node) has no quorum from here on
//	back     the same is over, or may be
//	recovered  the log goes on above "index" from here on, without the lost members; what counters skip is a seed
//	stall    from call to return the machine itself stood still
//
// Names and ids are folded by the recorder's caller. An event's call is when it
// began to happen and its return when it surely had happened: of "lost" only
// what is later than its return counts, and of "back" what is earlier than its
// call.
//
// # Outcomes
//
// OK and Failed are certain: the call took effect, or it did not and never
// will. Everything else is Unknown: a deadline, a cancelled call, a broken
// connection, OUTCOME_UNKNOWN, and a call that was still in flight when the
// recorder was closed. An unknown call may take effect at any time after its
// call, or never. A caller that repeats a call with its request id records every
// try as an Op of its own with the same Request; the checkers make one of them.
//
// # Recording
//
// A Recorder is safe for concurrent use and takes one to two microseconds
// for an operation:
//
//	p := rec.Begin(history.Op{Kind: history.Next, Client: 3, Node: "A", Name: "orders"})
//	r, err := ids.NextIdentity(ctx, …)
//	p.Blocks = …
//	p.End(history.OK, "")
//
// The package and its checkers import nothing of the product: an error that both
// shared would not be seen.
package history
