// Package bench puts a load on a cluster and measures it: calls and ids a second, how long calls take,
// errors by reason. It also checks what a benchmark of an id service must check: that no id came twice.
//
// It owns the callers, the statistics and the check. How the statistics are shown, and
// where the cluster comes from, is for its user. The load is bounded in time.
package bench
