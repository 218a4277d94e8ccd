// Package client is the Go client of an idnode cluster.
//
// The package owns the connections: it learns which node leads and sends the calls that the
// cluster decides to it, uses other nodes when a node fails, and repeats calls so that each
// counts once. On top of that it gives ids: from templates, identities, claims and ranges,
// and from HiLo generators, which need no call for most ids.
//
// A program makes one Client, shares it between all goroutines, and closes it at the end.
//
// # Errors
//
// Every call's error is an [*Error]. It works with errors.Is and the Err… values of this
// package. [ErrOutcomeUnknown] needs attention: the call may or may not have happened. The
// same call with the same request id ([Error.RequestID], [WithRequestID]) returns the first
// outcome, or takes effect now, and counts once.
//
// # What is retried
//
// Every call that takes or changes something carries a request id, so that a try whose
// answer was lost can be repeated at another node. Three kinds of calls are repeated without
// an id: those that only read, those that take ids of which a lost one harms nothing (GUIDs
// and server-side ids), and those on series of document numbers, where a key keeps its
// number. Refusals, for example of an invalid request or of a claimed id, are final.
//
// No call takes longer than its context allows, nor than [Config.Timeout].
package client
