package node

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/idnode/idnode/cluster"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/peer"
	"github.com/idnode/idnode/server/service"
)

// clusterView is a cluster.Node for the service, which must not know package cluster.
type clusterView struct{ *cluster.Node }

var _ service.Cluster = clusterView{}

func (v clusterView) Status() service.ClusterStatus {
	s := v.Node.Status()
	return service.ClusterStatus{
		ClusterID: hex.EncodeToString(s.ClusterID), SelfID: hex.EncodeToString(s.ID), SelfTag: s.Tag,
		LeaderTag: s.LeaderTag, Term: s.Term, HasQuorum: s.HasQuorum, Unserved: s.Unserved,
		LastContact: sinceContact(s.LastContact), CommitIndex: s.Commit, VoterTags: voterTags(s.Members), Known: v.Members(),
		QuorumMissing: v.QuorumMissing(), StorageFull: s.StorageFull, Warnings: s.Warnings, Conditions: conditions(s.Members),
		ConditionsAt: s.MembersAt,
	}
}

func conditions(members []cluster.MemberStatus) map[string]service.Condition {
	all := make(map[string]service.Condition, len(members))
	for _, m := range members {
		all[m.Member.GetTag()] = service.Condition{
			Answer: m.Condition, SilentFor: sinceContact(m.SilentSince), Problem: m.Problem, StateDiffers: m.StateDiffers,
		}
	}
	return all
}

func sinceContact(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(0, time.Since(at))
}

func voterTags(members []cluster.MemberStatus) []string {
	var tags []string
	for _, m := range members {
		if m.Votes {
			tags = append(tags, m.Member.GetTag())
		}
	}
	return tags
}

// peerSide answers the calls of other nodes.
type peerSide struct {
	*cluster.PeerSide
	service *service.Service
}

var (
	_ peer.Node = peerSide{}
	_ peer.Host = peerSide{}
)

func (p peerSide) HandleJoin(ctx context.Context, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error) {
	var response *peerv1.JoinResponse
	prove := func() error { return p.Prove(ctx, req.GetMember()) }
	err := p.service.AddMember(ctx, req, prove, func(tokenHash []byte, principal *string) (_ *raftlogv1.Member, err error) {
		response, err = p.AddMember(ctx, &raftlogv1.MemberAdd{Member: req.GetMember(), TokenHash: tokenHash}, principal)
		return response.GetMember(), err
	})
	return response, err
}
