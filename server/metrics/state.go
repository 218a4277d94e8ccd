package metrics

import (
	"cmp"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/fsm"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/reserve"
)

// Cluster is what is read of the cluster node; *cluster.Node is one.
type Cluster interface {
	QuorumMissing() time.Duration
	HasQuorum() bool
	RaftStats() (cluster.RaftStats, bool)
	Status() cluster.Status
	Room() disk.Room
}

// State is what is read of the replicated state; *fsm.State is one.
type State interface {
	Counts() fsm.Counts
	Etags(nodeID []byte) *raftlogv1.EtagRecord
	Names
}

// Etags are this node's own counters; *etag.Counters is one.
type Etags interface {
	// Last returns the newest etag of each database, Reserved the end of the block on disk.
	Last() map[string]uint64
	Reserved() map[string]uint64
}

// Sources are what is read at each scrape. All fields are needed.
type Sources struct {
	Cluster Cluster
	State   State
	Etags   Etags
	// NodeID is the node's raw Raft id.
	NodeID []byte
	// HeldBytes returns how much is held for callers.
	HeldBytes func() int64
	// CallersByCA returns how many connections of callers are open, by CA; nil, or nil of it, without TLS.
	CallersByCA func() map[string]int
	// Reserve returns what the node has in reserve; nil for one that keeps none.
	Reserve func() *reserve.Total
}

// Observe adds what is read at each scrape. It is called once.
func (m *Metrics) Observe(s Sources) { m.registry.MustRegister(&reader{sources: s, metrics: m}) }

type reader struct {
	sources Sources
	metrics *Metrics
}

// Describe says nothing: what there is depends on the state of the node. So a scrape, and not the
// start, fails if two metrics of one name differ in help or labels.
func (r *reader) Describe(chan<- *prometheus.Desc) {}

func (r *reader) Collect(out chan<- prometheus.Metric) {
	g := gauges(out)
	g.set("held_bytes", "What is held for callers: requests, and answers that were not read.", float64(r.sources.HeldBytes()))
	if r.sources.CallersByCA != nil {
		for ca, open := range r.sources.CallersByCA() {
			g.set("tls_callers", "Open connections of callers, by the CA that signed their certificates.", float64(open), "ca", ca)
		}
	}
	r.reserve(g)
	r.cluster(g)
	r.room(g)
	r.state(g)
	r.used(g)
	r.etags(g)
	r.raft(g)
}

type gauges chan<- prometheus.Metric

// set sends a value. label is the name and the value of its label, if it has one.
func (g gauges) set(name, help string, value float64, label ...string) {
	var names, values []string
	if len(label) > 0 {
		names, values = label[:1], label[1:]
	}
	desc := prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, names, nil)
	g <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, values...)
}

func (g gauges) flag(name, help string, set bool, label ...string) {
	value := 0.0
	if set {
		value = 1
	}
	g.set(name, help, value, label...)
}

func (r *reader) reserve(g gauges) {
	total := cmp.Or(r.sources.Reserve(), &reserve.Total{})
	g.set("hilo_reserve_numbers", "HiLo numbers that this node has in reserve, for callers while the cluster is out of reach.",
		float64(total.Numbers))
	g.set("hilo_reserve_seconds",
		"For how long the reserve of the tag that runs out first lasts; the time that it should last if there is no tag.",
		total.Lasts.Seconds())
	g.set("hilo_reserve_for_seconds", "For how long a reserve should last at least; 0 if the node keeps none.", total.For.Seconds())
}

func (r *reader) cluster(g gauges) {
	g.flag("quorum_present", "1 if a quorum is in reach, else 0.", r.sources.Cluster.HasQuorum())
	g.set("quorum_missing_seconds", "For how long no quorum has been in reach; 0 if one is.",
		r.sources.Cluster.QuorumMissing().Seconds())
	status := r.sources.Cluster.Status()
	g.flag("log_unserved", "1 if a quorum is in reach, and the log does not serve this node: its leader is not known, or does not answer it.",
		status.Unserved != nil)
	g.flag("storage_full", "1 if free space or inodes are below the low-water mark on this node or on a quorum.",
		status.StorageFull)
	g.flag("storage_slow", "1 if a write to this node's log is slow, or was some seconds ago, so that it does not get leadership.",
		status.StorageSlow)
	for _, m := range status.Members {
		if m.Member.GetRemoved() {
			continue // Their number has no bound.
		}
		g.flag("member_reachable", "1 if the member answered this node's last ping, else 0.", m.Condition != nil, "member", m.Member.GetTag())
		if m.Condition != nil {
			g.set("member_applied_index", "How far the member's state was at that ping.",
				float64(m.Condition.GetAppliedIndex()), "member", m.Member.GetTag())
		}
	}
	if !status.LastContact.IsZero() {
		g.set("raft_last_contact_seconds", "How long ago a follower last heard from the leader; 0 on the leader.",
			max(0, time.Since(status.LastContact).Seconds()))
	}
}

// room shows what is known of the disk.
func (r *reader) room(g gauges) {
	room := r.sources.Cluster.Room()
	for unit, part := range map[string][2]uint64{"bytes": {room.Bytes, room.AllBytes}, "inodes": {room.Files, room.AllFiles}} {
		if free, whole := part[0], part[1]; whole > 0 {
			g.set("storage_used_ratio", "Which part of the data directory's file system is used.", 1-float64(free)/float64(whole), "of", unit)
		}
	}
}

// used shows how much is left of what has an end, but for the counters.
func (r *reader) used(g gauges) {
	found := r.metrics.space.found.Load()
	for limit, share := range found.limits {
		g.set("limit_used_ratio", "Which part of a limit of the cluster is used; of a limit for each database, by the one that uses most.",
			share, "limit", limit)
	}
	perDatabase(r, g, "series_used_ratio", "Which part of its numbers, keys or scopes the fullest series has used.", found.series, math.Max)
	perDatabase(r, g, "snowflake_pool_end_timestamp_seconds", "When the layout of the pool that ends first ends.", found.ends, math.Min)
}

func (r *reader) state(g gauges) {
	counts := r.sources.State.Counts()
	g.set("request_window_seconds", "How far back all remembered request ids reach; infinite if it is further than this node has looked.",
		r.metrics.space.since(counts.RequestsForgotten))
	for kind, n := range map[string]int{
		"databases": counts.Databases, "identities": counts.Identities, "deleted_identities": counts.HiddenIdentities,
		"hilo_counters": counts.HiLos, "claims": counts.Claims, "series": counts.Series, "series_keys": int(counts.SeriesKeys),
		"pools": counts.Pools, "workers": counts.Workers, "workers_in_use": counts.WorkersInUse,
		"request_ids": int(counts.Requests),
		"members":     counts.Members, "removed_members": counts.RemovedMembers,
		"sessions": counts.Sessions, "session_results": counts.SessionResults,
	} {
		g.set("state_entries", "How much there is in the replicated state, by kind.", float64(n), "kind", kind)
	}
	g.set("state_name_bytes", "Size of all names in the replicated state.", float64(counts.NameBytes))
}

func (r *reader) etags(g gauges) {
	last, ceilings := r.sources.Etags.Last(), map[string]uint64{}
	for _, d := range r.sources.State.Etags(r.sources.NodeID).GetCeilings() {
		ceilings[d.GetDatabase()] = d.GetCeiling()
	}
	perDatabase(r, g, "etag_last", "Newest server-side etag of this node.", last, math.Max)
	perDatabase(r, g, "etag_reserved", "End of the block of etags that is reserved on disk.", r.sources.Etags.Reserved(), math.Max)
	perDatabase(r, g, "etag_ceiling", "Ceiling of this node's etags that the cluster keeps.", ceilings, math.Max)
	for kind, ratio := range r.metrics.space.ratios(last) {
		g.set("counter_space_used_ratio", "Value of the fullest counter of a kind, as a part of the greatest there is. "+
			"Identities and HiLo counters are looked through in the background.", ratio, "kind", kind)
	}
}

// perDatabase shows one value for each label: of databases that share one, the one that counts.
func perDatabase[V uint64 | float64](r *reader, g gauges, name, help string, values map[string]V, counts func(a, b float64) float64) {
	shown := map[string]float64{}
	for database, value := range values {
		label := r.metrics.databases.of(database).label
		other, both := shown[label]
		if shown[label] = float64(value); both {
			shown[label] = counts(float64(value), other)
		}
	}
	for label, value := range shown {
		g.set(name, help, value, databaseLabel, label)
	}
}

func (r *reader) raft(g gauges) {
	f, ok := r.sources.Cluster.RaftStats()
	if !ok {
		return
	}
	for _, state := range []string{"follower", "candidate", "leader", "shutdown"} {
		g.flag("raft_state", "1 for the state that Raft is in on this node, 0 for the others.", state == f.State, "state", state)
	}
	g.set("raft_term", "Raft's term.", float64(f.Term))
	g.set("raft_last_index", "Newest entry in this node's log. A leader may be writing it still.", float64(f.LastIndex))
	g.set("raft_commit_index", "Newest entry that this node knows to be committed.", float64(f.Commit))
	g.set("raft_applied_index", "Newest entry that was handed to this node's state.", float64(f.Applied))
	g.set("raft_snapshot_index", "Where the newest snapshot ends.", float64(f.SnapshotIndex))
	g.set("raft_fsm_pending", "Entries that wait for the state.", float64(f.Pending))
	for suffrage, n := range map[string]int{"voter": f.Voters, "nonvoter": f.Nonvoters} {
		g.set("raft_servers", "Servers in Raft's configuration.", float64(n), "suffrage", suffrage)
	}
}
