// Package node is one idnode server put together: it makes the parts, connects
// them, and owns the two lists of what starts and what stops in which order.
//
// It decides nothing about ids, Raft or calls between nodes: those have homes
// of their own. A program that runs a node, alone in its process or beside others,
// makes it with New and calls Run once.
package node
