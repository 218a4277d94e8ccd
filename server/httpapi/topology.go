package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/service"
)

type serverNode struct {
	URL        string `json:"Url"`
	Database   string
	ClusterTag string
	ServerRole string
}

// databaseTopology tells a client which nodes there are: every voter, in the order
// of tags. It is what this node knows by itself: clients ask when a node has failed.
//
// Invariant: with the same etag it is the same on all nodes, so it depends on nothing but
// the replicated members. Clients prefer the first node, and come back to it when it is
// healthy again; they take over a topology only with a higher etag. One in which each node
// names itself first would keep them where they fled to.
func (a *api) databaseTopology(w http.ResponseWriter, _ *http.Request, p *params) error {
	database := p.needed(paramName)
	if p.err == nil {
		p.err = checkDatabase(database)
	}
	if p.err != nil {
		return p.err
	}
	status := a.service.Status()
	voters := voters(status)
	if len(voters) == 0 {
		return &apierror.Error{
			Code: apierror.CodeUnavailable, Reason: apierror.ReasonStarting, Message: "the node knows no member with an HTTP address yet",
		}
	}
	nodes := make([]serverNode, len(voters))
	for i, m := range voters {
		nodes[i] = serverNode{URL: a.url(m), Database: database, ClusterTag: m.Tag, ServerRole: "Member"}
	}
	writeJSON(w, http.StatusOK, struct {
		Nodes []serverNode
		Etag  int64
	}{nodes, topologyEtag(status)})
	return nil
}

// topologyEtag is the etag of the topology in a status: the log index of the last change of the
// members, at least 1. Clients keep the topology with the higher etag, from any node.
func topologyEtag(status service.Status) int64 { return int64(max(1, status.MembershipIndex)) }

// voters are the members that vote and can be reached over HTTP.
func voters(status service.Status) []service.Member {
	return slices.DeleteFunc(slices.Clone(status.Members), func(m service.Member) bool { return m.HTTPAddress == "" || !m.Votes })
}

// url is where a member's HTTP port is reached. All nodes of a cluster have TLS, or none.
func (a *api) url(m service.Member) string { return a.scheme + "://" + m.HTTPAddress }

// clusterTopologyAnswer has the fields of RavenDB's; those that idnode has no use for are empty.
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
	status := a.service.Status()
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
		TopologyID: status.ClusterID, Etag: topologyEtag(status),
		AllNodes: map[string]string{}, Members: map[string]string{}, Promotables: map[string]string{}, Watchers: map[string]string{},
	}
	for _, m := range status.Members {
		if docid.CompareNodeTags(m.Tag, nodes.LastNodeID) > 0 {
			nodes.LastNodeID = m.Tag
		}
		if m.HTTPAddress == "" {
			continue
		}
		kind := nodes.Promotables
		switch {
		case m.Role == idnodev1.Role_ROLE_WATCHER:
			kind = nodes.Watchers
		case m.Votes:
			kind = nodes.Members
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
	case status.Self.Role == idnodev1.Role_ROLE_LEADER:
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
	have, err := strconv.ParseInt(strings.Trim(sent, `" `), 10, 64)
	if err != nil {
		return
	}
	if status := a.service.Status(); len(voters(status)) > 0 && have < topologyEtag(status) {
		w.Header().Set(refreshTopologyHeader, "true")
	}
}
