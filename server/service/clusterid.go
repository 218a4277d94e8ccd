package service

import (
	"fmt"

	"github.com/idnode/idnode/server/apierror"
)

// ClusterIDHeader names a cluster in HTTP requests and in each HTTP answer, and in gRPC metadata: the
// id as GetStatus shows it.
const ClusterIDHeader = "Idnode-Cluster-Id"

// TermHeader is the node's Raft term, and LeaderHeader the HTTP address of the leader of that term, in
// each HTTP answer. LeaderHeader is absent if the node has no known leader, or the leader no HTTP
// address.
const (
	TermHeader   = "Idnode-Term"
	LeaderHeader = "Idnode-Leader-Address"
)

// ClusterID returns the id of the node's cluster, "" before the cluster is formed. It is called for
// each call that names a cluster. A nil ClusterID checks nothing.
type ClusterID func() string

// Check refuses a call that names another cluster, before anything happens. named are the values of
// its header, often none.
func (c ClusterID) Check(named []string) error {
	if c == nil || len(named) == 0 {
		return nil
	}
	own := c()
	if own == "" {
		return apierror.Unavailable(apierror.ReasonStarting, "the node does not know its cluster yet", apierror.RetryStarting, nil)
	}
	for _, id := range named {
		if id != own {
			return &apierror.Error{
				Code: apierror.CodeFailedPrecondition, Reason: apierror.ReasonOtherCluster,
				Message: fmt.Sprintf("the node belongs to cluster %s, and the call is for cluster %.32q", own, id),
			}
		}
	}
	return nil
}
