package page

import (
	"net/http"
	"strconv"
	"time"

	"github.com/idnode/idnode/internal/service"
)

// overview is what the page asks for every second: the cluster as this node sees
// it, how much there is in the state, and how many ids the node has handed out.
// It needs no quorum.
type overview struct {
	// Millis is the node's own time, for rates; it begins again with the process.
	Millis  int64  `json:"millis"`
	Version string `json:"version"`
	Self    member `json:"self"`

	ClusterID     string `json:"cluster_id"`
	Leader        string `json:"leader"`
	Term          uint64 `json:"term"`
	HasQuorum     bool   `json:"has_quorum"`
	MissingMillis int64  `json:"quorum_missing_millis"`
	ContactMillis int64  `json:"last_contact_millis"`
	StorageFull   bool   `json:"storage_full"`
	// Voters is how many members vote, Quorum how many of them are one, and
	// Reachable how many answer this node, itself included.
	Voters    int    `json:"voters"`
	Quorum    int    `json:"quorum"`
	Reachable int    `json:"reachable"`
	Commit    uint64 `json:"commit_index"`
	// Furthest is the newest log entry that the state of any member in reach has. The
	// commit index is often some entries above it: Raft's own, which are no state's.
	Furthest  uint64 `json:"furthest_index"`
	StateHash string `json:"state_hash"`
	LogFormat uint32 `json:"log_format"`

	Members []member `json:"members"`
	Counts  counts   `json:"counts"`
	// Issued has numbers since the start of the node.
	Issued map[string]uint64 `json:"issued"`
}

// member is a node of the cluster.
type member struct {
	Tag       string `json:"tag"`
	ID        string `json:"id"`
	Role      string `json:"role"`
	Self      bool   `json:"self"`
	Reachable bool   `json:"reachable"`
	Applied   uint64 `json:"applied_index"`
	// Behind is by how many log entries its state is behind the furthest one, as of
	// the last ping.
	Behind uint64 `json:"behind"`
	GRPC   string `json:"grpc"`
	Raft   string `json:"raft"`
	HTTP   string `json:"http"`
}

// counts are how much there is in the replicated state.
type counts struct {
	Databases  int    `json:"databases"`
	Identities int    `json:"identities"`
	Hidden     int    `json:"hidden_identities"`
	HiLos      int    `json:"hilos"`
	Claims     int    `json:"claims"`
	Requests   uint64 `json:"request_ids"`
	NameBytes  int64  `json:"name_bytes"`
}

func (p *Page) overview(*http.Request) (any, error) {
	s := p.service.GetStatus()
	o := overview{
		Millis: time.Since(p.began).Milliseconds(), Version: s.Version, Self: memberOf(s.Self, s.SelfID),
		ClusterID: s.ClusterID, Leader: s.LeaderTag, Term: s.Term, HasQuorum: s.HasQuorum,
		MissingMillis: s.QuorumMissing.Milliseconds(), ContactMillis: s.LastContact.Milliseconds(), StorageFull: s.StorageFull,
		Commit: s.CommitIndex, Furthest: s.Furthest(), StateHash: strconv.FormatUint(s.StateHash, 16), LogFormat: s.LogFormat,
		Members: make([]member, 0, len(s.Members)), Issued: p.issued(),
		Counts: counts{
			Databases: s.Counts.Databases, Identities: s.Counts.Identities, Hidden: s.Counts.HiddenIdentities,
			HiLos: s.Counts.HiLos, Claims: s.Counts.Claims, Requests: s.Counts.Requests, NameBytes: s.Counts.NameBytes,
		},
	}
	for _, m := range s.Members {
		o.Members = append(o.Members, memberOf(m, s.SelfID))
		if m.Role == service.RoleLeader || m.Role == service.RoleFollower {
			o.Voters++
			if m.Reachable {
				o.Reachable++
			}
		}
	}
	o.Quorum = o.Voters/2 + 1
	return o, nil
}

func memberOf(m service.Member, self string) member {
	return member{
		Tag: m.Tag, ID: m.ID, Role: roles[m.Role], Self: m.ID == self,
		Reachable: m.Reachable, Applied: m.AppliedIndex, Behind: m.Behind,
		GRPC: m.GRPCAddress, Raft: m.RaftAddress, HTTP: m.HTTPAddress,
	}
}

var roles = map[service.Role]string{
	service.RoleLeader: "leader", service.RoleFollower: "follower", service.RoleJoining: "joining",
	service.RoleWatcher: "watcher", service.RoleRemoved: "removed", service.RoleUnknown: "unknown",
}
