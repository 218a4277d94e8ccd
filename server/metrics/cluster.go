package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/commit"
)

// commitMetrics are those of group commit.
type commitMetrics struct {
	groupOperations, wait, groupTook prometheus.Histogram
	givenUp                          prometheus.Counter
	entryOperations, entryTook       prometheus.Histogram
	entriesFailed                    prometheus.Counter
	inFlight                         prometheus.Gauge
	forwarded, received              prometheus.Counter
	leaderChanges, statesDiffered    prometheus.Counter
}

func (m *Metrics) newCommitMetrics() commitMetrics {
	return commitMetrics{
		groupOperations: m.histogram("commit_group_operations", "Operations of this node that travelled in one group.", operations()),
		wait: m.histogram("commit_wait_seconds",
			"How long at least the oldest operation of a group waited until the group was sent.", seconds()),
		groupTook: m.histogram("commit_group_seconds", "Time from a group's first sending to its results.", seconds()),
		givenUp: m.counter("commit_operations_given_up_total",
			"Operations of this node that were answered with an error because no result came, or no leader was in reach."),
		entryOperations: m.histogram("commit_entry_operations", "Operations in one log entry, on the leader.", operations()),
		entryTook: m.histogram("commit_entry_seconds",
			"Commit time: from proposing a log entry until it was applied on the leader, a majority having it on disk.", seconds()),
		entriesFailed: m.counter("commit_entries_failed_total",
			"Log entries that this node proposed and that did not come to be, as far as it knows."),
		inFlight:      m.gauge("commit_entries_in_flight", "Log entries that this node proposed and that are in flight."),
		forwarded:     m.counter("groups_forwarded_total", "Groups of this node that were sent to the leader on another node, each sending."),
		received:      m.counter("groups_received_total", "Groups of other nodes that were sent to this one."),
		leaderChanges: m.counter("leader_changes_total", "Fail-overs that this node saw: another node led than before."),
		statesDiffered: m.counter("state_differences_total",
			"How often another member's state was found to differ from this node's at the same log entry, each time that began."),
	}
}

// storageMetrics are those of the log and of snapshots.
type storageMetrics struct {
	write                       prometheus.Histogram
	snapshots, snapshotsRefused prometheus.Counter
	snapshotTook, snapshotBytes prometheus.Gauge
}

func (m *Metrics) newStorageMetrics() storageMetrics {
	return storageMetrics{
		write:            m.histogram("log_write_seconds", "Time of each durable write to the log and the votes, fsync included.", seconds()),
		snapshots:        m.counter("snapshots_written_total", "Snapshots that this node wrote."),
		snapshotsRefused: m.counter("snapshots_refused_total", "Snapshots that were not taken, or given up, for want of free space."),
		snapshotTook:     m.gauge("snapshot_write_seconds", "How long the newest snapshot took to write, with the rests it takes on purpose."),
		snapshotBytes:    m.gauge("snapshot_bytes", "Size of the newest snapshot that this node wrote since it was started."),
	}
}

// Cluster returns what the cluster node is to tell.
func (m *Metrics) Cluster() cluster.Events {
	c, s := &m.commit, &m.storage
	return cluster.Events{
		Groups: commit.Events{
			Cut: func(operations int, waited time.Duration) {
				c.groupOperations.Observe(float64(operations))
				c.wait.Observe(waited.Seconds())
			},
			Answered: func(_, _, _ int, took time.Duration) { c.groupTook.Observe(took.Seconds()) },
			GivenUp:  func(operations int, _ error) { c.givenUp.Add(float64(operations)) },
		},
		Entries: commit.BatcherEvents{
			Appending: func() { c.inFlight.Inc() },
			Appended: func(_, operations, _ int, took time.Duration, err error) {
				c.inFlight.Dec()
				if err != nil {
					c.entriesFailed.Inc()
					return
				}
				c.entryOperations.Observe(float64(operations))
				c.entryTook.Observe(took.Seconds())
			},
		},
		Forwarded: c.forwarded.Inc, Received: c.received.Inc, LeaderChanged: c.leaderChanges.Inc,
		StateDiffers:    c.statesDiffered.Inc,
		Wrote:           func(took time.Duration) { s.write.Observe(took.Seconds()) },
		SnapshotRefused: s.snapshotsRefused.Inc,
		SnapshotWritten: func(bytes int64, took time.Duration) {
			s.snapshots.Inc()
			s.snapshotTook.Set(took.Seconds())
			s.snapshotBytes.Set(float64(bytes))
		},
	}
}
