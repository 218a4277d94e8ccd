// Package service holds the use cases of idnode, once, for every API.
//
// A use case checks its request against limits and forms, folds the names in
// it, builds one operation of the replicated log, has it proposed, and turns
// the result into an answer; or it reads the local state, after making sure
// that the state is new enough. The package also owns what goes with that: the
// one translation of everything that can go wrong into *Error, the keys under
// which request ids are remembered, page tokens, and the limit on calls in flight.
//
// A Service is made of groups of use cases, such as identities or members. Each has the
// data that is its own, and embeds those of three types that it needs: calls lets
// calls in and judges their callers, proposer takes operations through the log in the
// callers' names, and reader reads a state that is new enough.
//
// A use case takes and returns the messages of proto/idnode/v1, which are the same for
// every API. What another protocol needs beside them is an argument.
//
// It knows of gRPC the codes alone, and nothing of HTTP, Raft or the disk: what it needs of
// the node it declares as small interfaces. Invariant: nothing is proposed for a request
// that is refused here.
package service
