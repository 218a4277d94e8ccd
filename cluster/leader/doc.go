// Package leader is what a node does as the leader, and what decides who leads.
//
// It owns a leadership's work from its barrier on: the duties of a leader, the loop that makes
// Raft's configuration equal to the table of members, and transfers of leadership, with their
// targets and reasons. It owns the early election after the loss of a leader, and changes of
// the table of members, for which enough voters must answer. It knows the operations on
// members, and no others.
package leader
