// Package transfer moves counters, claims and what else a cluster knows between clusters and files: it
// writes and checks backups, keeps the newest of them in a directory, merges lists of counters and
// whole backups into a running cluster, and exports backups as lists.
//
// It neither asks nor prints anything, and opens no connections: its caller gives it the way to the
// cluster. No function leaves a file under its own name that is not whole.
package transfer
