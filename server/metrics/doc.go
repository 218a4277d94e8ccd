// Package metrics is what operators and their machines see of a node: its metrics for Prometheus,
// and over HTTP whether it lives and is ready. It owns the names and labels of all series, and the
// bounds of the labels. Frequent events are counted as they happen; states are read at each scrape.
package metrics
