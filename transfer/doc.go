// Package transfer moves counters, claims and the rest of a cluster's state between clusters and
// files: it writes and checks backups, keeps the newest of them in a directory, merges lists of
// counters and whole backups into a running cluster, and exports backups as lists.
//
// It neither asks nor prints anything, and opens no connections: its caller passes in the
// connection to the cluster. A file has its final name only once it is complete.
package transfer
