// Package metrics is what operators and their machines see of a node: its
// metrics for Prometheus, and over HTTP whether it lives and is ready.
//
// It owns the names and labels of all series, and the bounds of the labels. What
// happens often is told to it by the events of other packages and counted as it
// happens; what merely is, is read when somebody scrapes. It changes nothing and
// decides nothing.
package metrics
