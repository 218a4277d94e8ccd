// Package service holds the use cases of idnode, once, for every API.
//
// A use case checks its request against limits and forms, folds the names in it, builds an
// operation of the replicated log, has it proposed, and turns the result into an answer; or it
// reads the local state, after making sure that the state is new enough. The package also owns
// the translation of all errors into *apierror.Error, the keys under which request ids are remembered, and page
// tokens. Package admission decides before whether a call is made.
//
// A Service consists of groups of use cases, such as identities or members. Each has its own
// data, and embeds base.
//
// A use case takes and returns the messages of proto/idnode/v1 (package idnodev1), which are the same for every
// API. Further values of another protocol are arguments.
//
// The package does not depend on gRPC, HTTP, Raft or the disk: its needs of the node are small
// interfaces. Invariant: nothing is proposed for a request that is refused here.
package service
