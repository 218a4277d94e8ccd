package webpage

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/server/jsonapi"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
)

// overview is the page's request of every second: the status of the public API, and what that
// has not. It needs no quorum.
type overview struct {
	// Status is a GetStatusResponse.
	Status json.RawMessage `json:"status"`
	// Millis is the node's own time, for rates; it begins again with the process. Taken
	// is when the members were asked how they are, all at once, by the same clock.
	Millis int64 `json:"millis"`
	Taken  int64 `json:"taken_millis"`
	// Voters is how many members vote, Quorum how many of them are one, and
	// Reachable how many answer this node, itself included.
	Voters    int `json:"voters"`
	Quorum    int `json:"quorum"`
	Reachable int `json:"reachable"`
	// Furthest is the newest log entry that the state of any member in reach had. The
	// commit index is often some entries above it: Raft's own, which are no state's.
	Furthest uint64 `json:"furthest_index"`
	// Members are those of the status, in its order.
	Members []member `json:"members"`
	Alarms  []alarm  `json:"alarms"`
	// Reserve is null if the node keeps none. This, Issued, the counts of the status and the members' rates are of
	// all databases: they are for those who may read all.
	Reserve *reserve.Total `json:"reserve"`
	// Issued has numbers since the start of the node.
	Issued map[string]uint64 `json:"issued"`
	You    you               `json:"you"`
}

type you struct {
	Name string `json:"name"`
	// Cluster has the rights on the whole cluster, Grants what gives those in the viewed database.
	Cluster string         `json:"cluster"`
	Grants  []rights.Grant `json:"grants"`
}

type member struct {
	// Figures are null if it does not say. Those that are 0 are left out.
	Figures *peerv1.Figures `json:"figures"`
	// NoTransfer, NoVoteChange and NoRemoval say why leadership cannot be transferred to it, its vote be
	// given or taken, or it be removed from the page; empty if it can.
	NoTransfer   string `json:"no_transfer"`
	NoVoteChange string `json:"no_vote_change"`
	NoRemoval    string `json:"no_removal"`
}

func (p *Page) overview(r *http.Request) (any, error) {
	s, have := p.cfg.Service.Status(), p.cfg.Service.Rights(r.Context(), "", "")
	all := p.cfg.Service.MayRead(r.Context())
	status, err := jsonapi.Encode(s.Message(all))
	if err != nil {
		return nil, err
	}
	o := overview{
		Status: status, Millis: time.Since(p.began).Milliseconds(), Taken: max(0, s.ConditionsAt.Sub(p.began).Milliseconds()),
		Furthest: s.Furthest(), Members: make([]member, len(s.Members)), Alarms: alarmsOf(s),
		You: you{
			Name: p.cfg.Service.Principal(r.Context()), Cluster: have.String(), Grants: p.cfg.Service.Grants(r.Context(), database(r.URL.Query())),
		},
	}
	if all {
		o.Reserve, o.Issued = s.Reserve, p.cfg.Issued()
	}
	o.Voters, o.Reachable = votersOf(s)
	o.Quorum = o.Voters/2 + 1
	for i, m := range s.Members {
		o.Members[i] = member{figuresOf(m, all), noTransfer(m, s, have), noVoteChange(m, s, have), noRemoval(m, s, have)}
	}
	return o, nil
}

// figuresOf returns what a member says of itself, with how many ids it gives in all databases or without.
func figuresOf(m service.Member, all bool) *peerv1.Figures {
	f := m.Answer.GetFigures()
	if all || f == nil {
		return f
	}
	return &peerv1.Figures{CommitP99Micros: f.GetCommitP99Micros(), WriteP99Micros: f.GetWriteP99Micros(), FreeBytes: f.GetFreeBytes()}
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
