// Package superrange simulates the design of regional child clusters in docs/adr/0019-regional-child-clusters.md: a
// home cluster and two children, each a replicated state of package fsm, and links that
// lose, repeat, delay and reorder messages. Nothing of it is in the product: merges and
// identities of the state stand for the operations that it would need.
//
// A seed draws the steps, so a seed that fails is run again as it was. Faults are planted
// to show that the invariant finds them: no number is given twice, by whomever.
package superrange
