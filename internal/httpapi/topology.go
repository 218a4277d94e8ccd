package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/internal/service"
)

// serverNode is a node as a client sees it.
type serverNode struct {
	URL        string `json:"Url"`
	Database   string
	ClusterTag string
	ServerRole string
}

// databaseTopology tells a client which nodes there are: every voter, the node
// asked first, since clients stay with the first one that works. It is what this
// node knows by itself: clients ask when a node has failed.
func (a *api) databaseTopology(w http.ResponseWriter, _ *http.Request, p *params) error {
	database := p.needed(paramName)
	if p.err == nil {
		p.err = checkDatabase(database)
	}
	if p.err != nil {
		return p.err
	}
	status := a.service.GetStatus()
	voters := a.voters(status)
	if len(voters) == 0 {
		return &service.Error{
			Code: service.Unavailable, Reason: service.ReasonStarting, Message: "the node knows no member with an HTTP address yet",
		}
	}
	nodes := make([]serverNode, len(voters))
	for i, m := range voters {
		nodes[i] = serverNode{URL: a.url(m), Database: database, ClusterTag: m.Tag, ServerRole: "Member"}
	}
	writeJSON(w, http.StatusOK, struct {
		Nodes []serverNode
		Etag  int64
	}{nodes, a.etag(status)})
	return nil
}

// voters are the members that vote and can be reached over HTTP, this node first
// if it is one.
func (a *api) voters(status service.Status) []service.Member {
	voters := slices.DeleteFunc(slices.Clone(status.Members), func(m service.Member) bool {
		return m.HTTPAddress == "" || (m.Role != service.RoleLeader && m.Role != service.RoleFollower)
	})
	if i := slices.IndexFunc(voters, func(m service.Member) bool { return m.ID == status.SelfID }); i > 0 {
		self := voters[i]
		voters = slices.Insert(slices.Delete(voters, i, i+1), 0, self)
	}
	return voters
}

// url is where a member's HTTP port is reached. All nodes of a cluster have TLS,
// or none.
func (a *api) url(m service.Member) string { return a.scheme + "://" + m.HTTPAddress }

// clusterTopologyAnswer has the fields of RavenDB's; those that idnode has no
// use for are empty.
type clusterTopologyAnswer struct {
	Topology              clusterNodes
	Etag                  int64
	Leader                *string
	LeaderShipDuration    int64
	CurrentState          string
	NodeTag               string
	CurrentTerm           uint64
	NodeLicenseDetails    struct{}
	LastStateChangeReason string
	Status                struct{}
}

// clusterNodes has the members by tag, each with its URL.
type clusterNodes struct {
	TopologyID  string `json:"TopologyId"`
	AllNodes    map[string]string
	Members     map[string]string
	Promotables map[string]string
	Watchers    map[string]string
	LastNodeID  string `json:"LastNodeId"`
	Etag        int64
}

func (a *api) clusterTopology(w http.ResponseWriter, _ *http.Request, _ *params) error {
	status := a.service.GetStatus()
	answer := clusterTopologyAnswer{
		Topology: a.clusterNodes(status), CurrentState: stateName(status), NodeTag: status.SelfTag, CurrentTerm: status.Term,
	}
	answer.Etag = answer.Topology.Etag
	if status.LeaderTag != "" {
		answer.Leader = &status.LeaderTag
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (a *api) clusterNodes(status service.Status) clusterNodes {
	nodes := clusterNodes{
		TopologyID: status.ClusterID, Etag: a.etag(status),
		AllNodes: map[string]string{}, Members: map[string]string{}, Promotables: map[string]string{}, Watchers: map[string]string{},
	}
	for _, m := range status.Members {
		if docid.CompareNodeTags(m.Tag, nodes.LastNodeID) > 0 {
			nodes.LastNodeID = m.Tag
		}
		if m.HTTPAddress == "" {
			continue
		}
		kind := nodes.Members
		switch m.Role {
		case service.RoleJoining:
			kind = nodes.Promotables
		case service.RoleWatcher:
			kind = nodes.Watchers
		}
		kind[m.Tag], nodes.AllNodes[m.Tag] = a.url(m), a.url(m)
	}
	return nodes
}

// stateName is RavenDB's word for what the node does in the cluster.
func stateName(status service.Status) string {
	switch {
	case status.ClusterID == "":
		return "Passive"
	case status.Self.Role == service.RoleLeader:
		return "Leader"
	case status.LeaderTag == "":
		return "Candidate"
	default:
		return "Follower"
	}
}

// Headers by which a client hears that its topology is old.
const (
	topologyEtagHeader    = "Topology-Etag"
	refreshTopologyHeader = "Refresh-Topology"
)

// hintTopology tells a client that says which topology it has when there is a
// newer one. Never in the answer to a request for the topology itself: a client
// that follows the hint at once would wait for itself.
func (a *api) hintTopology(w http.ResponseWriter, r *http.Request) {
	sent := r.Header.Get(topologyEtagHeader)
	if sent == "" || r.PathValue("db") == "" {
		return
	}
	etag, err := strconv.ParseInt(strings.Trim(sent, `" `), 10, 64)
	if err != nil {
		return
	}
	if status := a.service.GetStatus(); len(a.voters(status)) > 0 && etag < a.etag(status) {
		w.Header().Set(refreshTopologyHeader, "true")
	}
}

func (a *api) etag(status service.Status) int64 {
	return a.topology.of(status.Members, status.StateIndex)
}

// topologyEtag counts the changes of the topology that this node has seen. It is
// safe for concurrent use.
//
// Clients keep the topology with the higher etag, whatever node it came from. So
// the etag is the log index at which a change was seen: a topology with a higher
// one is at least as new, on all nodes alike. A node that starts again has seen
// nothing yet, so its clients ask once more than needed.
type topologyEtag struct {
	mu   sync.Mutex
	seen string
	etag int64
}

// of returns the etag of a topology: at least 1, and greater than before if it
// differs from the one seen last. index is the log index of the members.
func (t *topologyEtag) of(members []service.Member, index uint64) int64 {
	var b strings.Builder
	for _, m := range members {
		votes := m.Role == service.RoleLeader || m.Role == service.RoleFollower
		fmt.Fprintf(&b, "%q %q %t %t;", m.Tag, m.HTTPAddress, votes, m.Role == service.RoleWatcher)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := b.String(); now != t.seen || t.etag == 0 {
		t.seen, t.etag = now, max(1, t.etag+1, int64(index))
	}
	return t.etag
}
