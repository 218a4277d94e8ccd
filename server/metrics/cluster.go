package metrics

import (
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/commit"
)

// Cluster returns what the cluster node is to tell.
func (m *Metrics) Cluster() cluster.Events { return m.cluster }

func (m *Metrics) groupEvents() commit.Events {
	operations := m.histogram("commit_group_operations", "Operations of this node that travelled in one group.", operations())
	wait := m.histogram("commit_wait_seconds",
		"How long at least the oldest operation of a group waited until the group was sent.", seconds())
	m.groupTook = m.histogram("commit_group_seconds", "Time from a group's first sending to its results.", seconds())
	givenUp := m.counter("commit_operations_given_up_total",
		"Operations of this node that were answered with an error because no result came, or no leader was in reach.")
	return commit.Events{
		Cut: func(n int, waited time.Duration) {
			operations.Observe(float64(n))
			wait.Observe(waited.Seconds())
		},
		Answered: func(_, _, _ int, took time.Duration) { m.groupTook.Observe(took.Seconds()) },
		GivenUp:  func(n int, _ error) { givenUp.Add(float64(n)) },
	}
}

func (m *Metrics) entryEvents() commit.BatcherEvents {
	operations := m.histogram("commit_entry_operations", "Operations in one log entry, on the leader.", operations())
	took := m.histogram("commit_entry_seconds",
		"Commit time: from proposing a log entry until it was applied on the leader, a majority having it on disk.", seconds())
	failed := m.counter("commit_entries_failed_total", "Log entries that this node proposed and that did not come to be, as far as it knows.")
	inFlight := m.gauge("commit_entries_in_flight", "Log entries that this node proposed and that are in flight.")
	return commit.BatcherEvents{
		Appending: inFlight.Inc,
		Appended: func(_, n, _ int, time time.Duration, err error) {
			inFlight.Dec()
			if err != nil {
				failed.Inc()
				return
			}
			operations.Observe(float64(n))
			took.Observe(time.Seconds())
		},
	}
}

func (m *Metrics) clusterEvents() cluster.Events {
	m.logWrite = m.histogram("log_write_seconds", "Time of each durable write to the log and the votes, fsync included.", seconds())
	snapshots := m.counter("snapshots_written_total", "Snapshots that this node wrote.")
	snapshotTook := m.gauge("snapshot_write_seconds", "How long the newest snapshot took to write, with the rests it takes on purpose.")
	snapshotBytes := m.gauge("snapshot_bytes", "Size of the newest snapshot that this node wrote since it was started.")
	return cluster.Events{
		Groups: m.groupEvents(), Entries: m.entryEvents(),
		Forwarded: m.counter("groups_forwarded_total", "Groups of this node that were sent to the leader on another node, each sending.").Inc,
		Received:  m.counter("groups_received_total", "Groups of other nodes that were sent to this one.").Inc,
		LeaderChanged: m.counter("leader_changes_total",
			"Fail-overs that this node saw: another node led than before.").Inc,
		StateDiffers: m.counter("state_differences_total",
			"How often another member's state was found to differ from this node's at the same log entry, each time that began.").Inc,
		Wrote: func(took time.Duration) { m.logWrite.Observe(took.Seconds()) },
		SnapshotRefused: m.counter("snapshots_refused_total",
			"Snapshots that were not taken, or given up, for want of free space.").Inc,
		SnapshotWritten: func(bytes int64, took time.Duration) {
			snapshots.Inc()
			snapshotTook.Set(took.Seconds())
			snapshotBytes.Set(float64(bytes))
		},
	}
}
