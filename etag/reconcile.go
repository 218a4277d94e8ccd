package etag

import (
	"cmp"
	"maps"
	"slices"
)

// ClusterView is what the cluster knew of this node's etags when it announced
// its start.
type ClusterView struct {
	// Start is the number of this start, 1 for the first one.
	Start uint64
	// Clean means that the previous start ended with a clean stop, whose values are in
	// Last.
	Clean bool
	// Databases holds what is known by database.
	Databases map[string]ClusterDatabase
}

// ClusterDatabase is what the cluster knew of one counter.
type ClusterDatabase struct {
	// Ceiling is the value that the node was not to pass without asking.
	Ceiling uint64
	// Last is the last etag used, if the view is clean.
	Last uint64
}

// Raise is a floor for one counter.
type Raise struct {
	// Database is whose counter it is.
	Database string
	// Floor is what the next etag must be above.
	Floor uint64
}

// Behind is a counter whose value on disk is lower than the cluster's record allows.
type Behind struct {
	// Database is whose counter it is.
	Database string
	// Disk is the value on disk.
	Disk uint64
	// Known is the lowest value that the disk could hold if it were not older.
	Known uint64
}

// Decision is how a start goes on.
type Decision struct {
	// Exact means that every counter continues exactly where it was: the cluster's record
	// of a clean stop and the disk's agree on every database.
	Exact bool
	// Raises are the counters that begin higher, sorted by database. It is empty when
	// Exact.
	Raises []Raise
	// Behind lists the counters that show that the disk was set back to an
	// older copy, sorted by database.
	Behind []Behind
	// MissedStarts is how many starts the cluster counts that the disk has not
	// recorded. Unless a start broke off before it was recorded, they show that
	// the disk was set back to an older copy.
	MissedStarts uint64
}

// SetBack means that the disk looks like an older copy of itself.
func (d Decision) SetBack() bool { return len(d.Behind) > 0 || d.MissedStarts > 0 }

// Reconcile decides how a start continues. disk is the state at Open. cluster is nil if
// no cluster has answered, or it has no record of this node: then the disk alone decides.
//
// A start continues exactly where the last one ended only when the cluster's record of
// the clean stop equals the disk's for every database. In every other case each counter
// begins above the greater of its ceiling and its value on disk. A disk that was set back
// to an older copy never holds the newest clean stop, so that it always continues above
// the ceiling, and hands nothing out twice.
func Reconcile(disk State, cluster *ClusterView) Decision {
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

// sameCleanStop compares in both directions; a database that is unknown on one side
// counts as 0 there.
func sameCleanStop(disk State, cluster *ClusterView) bool {
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

func raises(disk State, cluster *ClusterView) []Raise {
	var list []Raise
	for _, database := range slices.Sorted(maps.Keys(cluster.Databases)) {
		known := cluster.Databases[database]
		// A clean stop may have recorded values above the ceiling, of a node
		// that passed it while it was cut off.
		floor := max(known.Ceiling, known.Last, disk.Databases[database])
		if floor > disk.Databases[database] {
			list = append(list, Raise{Database: database, Floor: floor})
		}
	}
	return list
}

func findBehind(disk State, cluster *ClusterView) []Behind {
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

// leastOnDisk returns the lowest value that a disk in its newest state holds: the last
// etag used, if the cluster knows it. Otherwise the ceiling decides: none is requested
// more than maxLead ahead of the reserved block.
func leastOnDisk(known ClusterDatabase, clean bool) uint64 {
	if clean {
		return known.Last
	}
	if known.Ceiling >= MaxEtag || known.Ceiling <= maxLead {
		return 0
	}
	return known.Ceiling - maxLead
}

func missedStarts(disk State, cluster *ClusterView) uint64 {
	if disk.Start == 0 || cluster.Start <= disk.Start+1 {
		return 0
	}
	return cluster.Start - disk.Start - 1
}
