// Package client is the Go client of an idnode cluster.
//
// The package owns the connections: it learns which node leads and sends the calls that the
// cluster decides to it, uses other nodes when a node fails, and repeats calls so that each
// counts once. On top of that it gives ids: from templates, identities, claims and ranges,
// and from HiLo generators, which need no call for most ids.
//
// A program makes one Client, shares it between all goroutines, and closes it at the end:
//
//	c, err := client.New(ctx, client.Config{Endpoints: []string{"a:7400", "b:7400", "c:7400"}})
//	…
//	defer c.Close(ctx)
//	number, err := c.Identity("invoices").Next(ctx)
//
// [ConfigFromEnv] and [ParseURL] return a Config from outside of the program.
//
// # Errors
//
// Every error is an [*Error], or wraps one: errors.As finds it. It works with errors.Is and the
// Err… values of this package. If the caller's context has ended, errors.Is finds that too.
// [ErrOutcomeUnknown] needs attention: the call may or may not have happened. The
// same call with [WithRetryOf] and the error's [RequestID] returns the first outcome, or takes
// effect now, and counts once.
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
//
// # What can be seen
//
// [Config.Logger] logs repeated calls and changes of the leader, [Config.Observe] gets them as
// events, and [Config.TraceParent] lets a caller's trace go on in the cluster.
package client
