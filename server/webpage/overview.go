package webpage

import (
	"net/http"
	"strconv"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/service"
)

// overview is the page's request of every second. It needs no quorum.
type overview struct {
	// Millis is the node's own time, for rates; it begins again with the process. Taken
	// is when the members were asked how they are, all at once, by the same clock.
	Millis  int64  `json:"millis"`
	Taken   int64  `json:"taken_millis"`
	Version string `json:"version"`
	Self    member `json:"self"`

	ClusterID     string `json:"cluster_id"`
	Leader        string `json:"leader"`
	Term          uint64 `json:"term"`
	HasQuorum     bool   `json:"has_quorum"`
	ContactMillis int64  `json:"last_contact_millis"`
	StorageFull   bool   `json:"storage_full"`
	// Voters is how many members vote, Quorum how many of them are one, and
	// Reachable how many answer this node, itself included.
	Voters    int `json:"voters"`
	Quorum    int `json:"quorum"`
	Reachable int `json:"reachable"`
	// Furthest is the newest log entry that the state of any member in reach had. The
	// commit index is often some entries above it: Raft's own, which are no state's.
	Furthest  uint64 `json:"furthest_index"`
	StateHash string `json:"state_hash"`
	LogFormat uint32 `json:"log_format"`

	Members []member `json:"members"`
	Alarms  []alarm  `json:"alarms"`
	// Reserve is null if the node keeps none.
	Reserve *reserve `json:"reserve"`
	Counts  counts   `json:"counts"`
	// Issued has numbers since the start of the node.
	Issued map[string]uint64 `json:"issued"`
	You    you               `json:"you"`
}

// reserve is what the node has in reserve, and for how long the tag that runs out first has numbers.
type reserve struct {
	Tags    int   `json:"tags"`
	Numbers int64 `json:"numbers"`
	Millis  int64 `json:"lasts_millis"`
}

type you struct {
	Name string `json:"name"`
	// Cluster has the rights on the whole cluster, Grants what gives those in the viewed database.
	Cluster string         `json:"cluster"`
	Grants  []rights.Grant `json:"grants"`
}

type member struct {
	Tag       string `json:"tag"`
	ID        string `json:"id"`
	Role      string `json:"role"`
	Self      bool   `json:"self"`
	Reachable bool   `json:"reachable"`
	// SilentMillis is for how long it has not answered.
	SilentMillis int64  `json:"silent_millis"`
	Applied      uint64 `json:"applied_index"`
	// Behind is by how many log entries its state is behind the furthest one.
	Behind      uint64 `json:"behind"`
	StorageFull bool   `json:"storage_full"`
	Version     string `json:"version"`
	// CertificateDays is for how many days its certificate is still valid, rounded
	// down; null if it has none, or does not say.
	CertificateDays *int32 `json:"certificate_days"`
	// Stats are null if it does not say.
	Stats *stats `json:"figures"`
	GRPC  string `json:"grpc"`
	Raft  string `json:"raft"`
	HTTP  string `json:"http"`
	// NoTransfer and NoRemoval say why leadership cannot be transferred to it, or it be removed
	// from the page; empty if it can.
	NoTransfer string `json:"no_transfer"`
	NoRemoval  string `json:"no_removal"`
}

// stats are those of a member's last seconds.
type stats struct {
	Identities float64 `json:"identities_per_second"`
	IDs        float64 `json:"ids_per_second"`
	CommitP99  uint64  `json:"commit_p99_micros"`
	WriteP99   uint64  `json:"write_p99_micros"`
	FreeBytes  uint64  `json:"free_bytes"`
}

type counts struct {
	Databases  int    `json:"databases"`
	Identities int    `json:"identities"`
	Hidden     int    `json:"hidden_identities"`
	HiLos      int    `json:"hilos"`
	Claims     int    `json:"claims"`
	Series     int    `json:"series"`
	SeriesKeys int64  `json:"series_keys"`
	Requests   uint64 `json:"request_ids"`
	NameBytes  int64  `json:"name_bytes"`
}

func (p *Page) overview(r *http.Request) (any, error) {
	s, have := p.cfg.Service.Status(), p.cfg.Service.Rights(r.Context(), "", "")
	o := overview{
		Millis: time.Since(p.began).Milliseconds(), Taken: max(0, s.ConditionsAt.Sub(p.began).Milliseconds()),
		Version: s.Version, Self: memberOf(s.Self, s.SelfID),
		ClusterID: s.ClusterID, Leader: s.LeaderTag, Term: s.Term, HasQuorum: s.HasQuorum,
		ContactMillis: s.LastContact.Milliseconds(), StorageFull: s.StorageFull,
		Furthest: s.Furthest(), StateHash: strconv.FormatUint(s.StateHash, 16), LogFormat: s.LogFormat,
		Members: make([]member, 0, len(s.Members)), Alarms: alarmsOf(s), Issued: p.cfg.Issued(),
		Counts: counts{
			Databases: s.Counts.Databases, Identities: s.Counts.Identities, Hidden: s.Counts.HiddenIdentities,
			HiLos: s.Counts.HiLos, Claims: s.Counts.Claims, Series: s.Counts.Series, SeriesKeys: s.Counts.SeriesKeys,
			Requests: s.Counts.Requests, NameBytes: s.Counts.NameBytes,
		},
		You: you{
			Name: p.cfg.Service.Principal(r.Context()), Cluster: have.String(), Grants: p.cfg.Service.Grants(r.Context(), database(r.URL.Query())),
		},
	}
	if r := s.Reserve; r != nil {
		o.Reserve = &reserve{r.Tags, r.Numbers, r.Lasts.Milliseconds()}
	}
	o.Voters, o.Reachable = votersOf(s)
	o.Quorum = o.Voters/2 + 1
	for _, m := range s.Members {
		shown := memberOf(m, s.SelfID)
		shown.NoTransfer, shown.NoRemoval = noTransfer(m, s, have), noRemoval(m, s, have)
		o.Members = append(o.Members, shown)
	}
	return o, nil
}

func votersOf(s service.Status) (voters, reachable int) {
	for _, m := range s.Members {
		if !votes(m) {
			continue
		}
		voters++
		if m.Reachable() {
			reachable++
		}
	}
	return voters, reachable
}

func votes(m service.Member) bool {
	return m.Role == idnodev1.Role_ROLE_LEADER || m.Role == idnodev1.Role_ROLE_FOLLOWER
}

func memberOf(m service.Member, self string) member {
	shown := member{
		Tag: m.Tag, ID: m.ID, Role: roles[m.Role], Self: m.ID == self,
		Reachable: m.Reachable(), SilentMillis: m.SilentFor.Milliseconds(), Applied: m.Answer.GetAppliedIndex(), Behind: m.Behind,
		StorageFull: m.Answer.GetStorageFull(), Version: m.Answer.GetVersion(), CertificateDays: m.CertificateDays(),
		GRPC: m.GRPCAddress, Raft: m.RaftAddress, HTTP: m.HTTPAddress,
	}
	if f := m.Answer.GetFigures(); f != nil {
		shown.Stats = &stats{
			Identities: f.GetIdentitiesPerSecond(), IDs: f.GetIdsPerSecond(),
			CommitP99: f.GetCommitP99Micros(), WriteP99: f.GetWriteP99Micros(), FreeBytes: f.GetFreeBytes(),
		}
	}
	return shown
}

var roles = map[idnodev1.Role]string{
	idnodev1.Role_ROLE_LEADER: "leader", idnodev1.Role_ROLE_FOLLOWER: "follower", idnodev1.Role_ROLE_JOINING: "joining",
	idnodev1.Role_ROLE_WATCHER: "watcher", idnodev1.Role_ROLE_REMOVED: "removed", idnodev1.Role_ROLE_UNSPECIFIED: "unknown",
}
