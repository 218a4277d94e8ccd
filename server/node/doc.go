// Package node assembles one idnode server: it makes the parts, connects them, and owns the
// order in which they start and stop.
//
// It decides nothing about ids, Raft or calls between nodes, which have packages of their
// own. A program that runs a node, alone in its process or beside others, makes it with New
// and calls Run once.
package node
