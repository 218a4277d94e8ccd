package etag

import (
	"cmp"
	"maps"
	"slices"
)

// ClusterView is the cluster's record of this node's etags when the node announced its
// start.
type ClusterView struct {
	// Start is the number of this start, from 1.
	Start uint64
	// Clean means that the previous start ended with a clean stop, whose values are in
	// ClusterDatabase.Last.
	Clean     bool
	Databases map[string]ClusterDatabase
}

// ClusterDatabase is the cluster's record of one counter.
type ClusterDatabase struct {
	// Ceiling is the value that the node must not pass without asking.
	Ceiling uint64
	// Last is the last etag used, if the view is clean.
	Last uint64
}

// Raise is a floor for one counter.
type Raise struct {
	Database string
	// Floor is a lower bound: the next etag must be above it.
	Floor uint64
}

// Behind is a counter whose value on disk is lower than the cluster's record allows.
type Behind struct {
	Database string
	Disk     uint64
	// Known is the lowest value that a disk in its newest state could hold.
	Known uint64
}

// Decision is how the counters continue after a start.
type Decision struct {
	// Exact means that every counter continues exactly at its last value: the cluster's
	// record of a clean stop equals the disk's for every database.
	Exact bool
	// Raises are the counters that continue higher, sorted by database; empty if Exact.
	Raises []Raise
	// Behind are the counters that show that the disk was set back to an older copy, sorted by
	// database.
	Behind []Behind
	// MissedStarts is the number of starts that the cluster counts and the disk has not
	// recorded. Unless a start was interrupted before it was recorded, they show that the disk
	// was set back to an older copy.
	MissedStarts uint64
}

// SetBack means that the disk looks like an older copy of itself.
func (d Decision) SetBack() bool { return len(d.Behind) > 0 || d.MissedStarts > 0 }

// Reconcile decides how the counters continue after a start. disk is the state at Open.
// cluster is nil if no cluster has answered, or it has no record of this node: then the
// disk alone decides.
//
// The counters continue exactly at their last values only if the cluster's record of the
// clean stop equals the disk's for every database. Otherwise each counter continues above the
// greater of its ceiling and its value on disk. A disk that was set back to an older copy
// never holds the newest clean stop, so its counters continue above the ceilings, and no etag
// is handed out twice.
func Reconcile(disk Stored, cluster *ClusterView) Decision {
	if cluster == nil {
		return Decision{}
	}
	d := Decision{
		Exact:        sameCleanStop(disk, cluster),
		Behind:       findBehind(disk, cluster),
		MissedStarts: missedStarts(disk, cluster),
	}
	if !d.Exact {
		d.Raises = raises(disk, cluster)
	}
	return d
}

// sameCleanStop compares in both directions; a database that is unknown on one side counts
// as 0 there.
func sameCleanStop(disk Stored, cluster *ClusterView) bool {
	if !disk.Clean || !cluster.Clean {
		return false
	}
	for database, value := range disk.Databases {
		if cluster.Databases[database].Last != value {
			return false
		}
	}
	for database, known := range cluster.Databases {
		if known.Last != disk.Databases[database] {
			return false
		}
	}
	return true
}

func raises(disk Stored, cluster *ClusterView) []Raise {
	var list []Raise
	for _, database := range slices.Sorted(maps.Keys(cluster.Databases)) {
		known := cluster.Databases[database]
		// A clean stop may have recorded values above the ceiling: a node that was cut off may
		// have passed it.
		floor := max(known.Ceiling, known.Last, disk.Databases[database])
		if floor > disk.Databases[database] {
			list = append(list, Raise{Database: database, Floor: floor})
		}
	}
	return list
}

func findBehind(disk Stored, cluster *ClusterView) []Behind {
	var list []Behind
	for database, known := range cluster.Databases {
		value, least := disk.Databases[database], leastOnDisk(known, cluster.Clean)
		if value < least {
			list = append(list, Behind{Database: database, Disk: value, Known: least})
		}
	}
	slices.SortFunc(list, func(a, b Behind) int { return cmp.Compare(a.Database, b.Database) })
	return list
}

// leastOnDisk returns the lowest value that a disk in its newest state holds: the last etag
// used, if the cluster knows it. Otherwise the ceiling decides: no ceiling is requested more
// than maxLead ahead of the reserved block.
func leastOnDisk(known ClusterDatabase, clean bool) uint64 {
	if clean {
		return known.Last
	}
	if known.Ceiling >= MaxEtag || known.Ceiling <= maxLead {
		return 0
	}
	return known.Ceiling - maxLead
}

func missedStarts(disk Stored, cluster *ClusterView) uint64 {
	if disk.Start == 0 || cluster.Start <= disk.Start+1 {
		return 0
	}
	return cluster.Start - disk.Start - 1
}

// CeilingStep is the step in which the cluster's ceilings rise. One log entry
// then covers about a million etags of a database.
const CeilingStep uint64 = 1 << 20

// maxLead bounds how far a ceiling requested by NextCeiling can be ahead of the reserved
// value it was requested for.
const maxLead = 2 * CeilingStep

// NextCeiling reports whether to ask the cluster for a new ceiling, and which. reserved is
// the end of the reserved block, ceiling the present ceiling (0 if there is none). The
// present ceiling is kept while it is ahead of reserved by half a step; a new ceiling is a
// multiple of the step, one to two steps ahead, or MaxEtag.
func NextCeiling(reserved, ceiling uint64) (next uint64, ask bool) {
	reserved = min(reserved, MaxEtag)
	if ceiling >= MaxEtag || ceiling >= reserved+CeilingStep/2 {
		return ceiling, false
	}
	next = (reserved/CeilingStep + 2) * CeilingStep
	return min(next, MaxEtag), true
}
