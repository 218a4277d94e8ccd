// Package client is the Go client of an idnode cluster.
//
// It owns the connections: it learns which node leads and sends what the
// cluster decides straight there, goes on to other nodes when one fails, and
// repeats calls so that each counts once. On top of that it gives ids: from
// templates, identities, claims and ranges, and from HiLo generators, which
// need no call at all for most ids.
//
// A Client is made once, shared by all goroutines, and closed at the end.
//
// # Errors
//
// Every call's error is an [*Error]. It works with errors.Is and the Err…
// values of this package. [ErrOutcomeUnknown] needs attention: the call may or
// may not have happened. The same call with the same request id
// ([Error.RequestID], [WithRequestID]) finds out without counting twice.
//
// # What is retried
//
// Every call that takes or changes something carries a request id, so that a
// try whose answer was lost can be repeated at another node. Calls that only
// read, those that take ids of which a lost one harms nothing (GUIDs and
// server-side ids), and those on series of document numbers, where a key has its
// number, are repeated without one. Refusals, for example of a
// wrong request or of an id that is taken, are final.
//
// No call takes longer than its context allows, nor than [Config.Timeout].
package client
