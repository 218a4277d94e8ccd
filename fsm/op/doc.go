// Package op encodes and decodes the operations on the replicated state and their
// results: raftlog.v1's messages Operation and Result.
//
// Operations that take identity values, the most frequent, are encoded and decoded by hand, without
// an allocation of the decoder's own. The payloads of all other operations, and their answers, are
// generated messages. Fields are in the order of their numbers.
//
// The entries and groups around operations are with package raftlog, which changes with
// group commit, not with an operation.
package op
