// Package exploration explores all that can happen in a small world, breadth first, on
// the code that ships: the replicated state is package fsm, and what a node does with its
// groups is decided by commit.Session, commit.Group and commit.Classify.
//
// The world has three members, of which A and B take calls. Its steps are those of a
// cluster: a call is made or made again elsewhere, a group is cut and sent, a message is
// delivered, repeated or lost, an entry is appended, synced and applied, a member takes a
// snapshot or installs one, crashes with the loss of what it has not synced, and starts
// again, another member is elected, a caller waits no longer. Each is taken in every order.
//
// Raft is an abstract log that keeps the paper's promises and no more: terms, votes by
// the election restriction, log matching, and commitment of entries of the leader's own
// term by a majority that has synced them. A group is an entry of its own, and a leader
// has one in flight.
//
// Faults have budgets. So each step uses up something or brings something forward, every
// path ends, and the world where it ends must have answered each call.
//
// The replicated state is a function of the log, so each entry is applied once to each
// state that comes up, and a world holds numbers of states. Worlds are told apart by 64
// bits of a hash: with a hundred million of them, two are taken for one with a probability
// of less than one in a thousand.
package exploration
