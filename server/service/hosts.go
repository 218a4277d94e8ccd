package service

import (
	"slices"
	"strings"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/hostcheck"
)

// CheckHost refuses an HTTP call under a host name that a foreign site may own: a name that is
// neither this node's nor a member's. A node without known members cannot decide; its error sends
// callers to the next node.
func (m *members) CheckHost(name string) error {
	own := func(address string) bool { return hostcheck.Name(address) == name }
	ofMember := func(k *raftlogv1.Member) bool {
		return !k.GetRemoved() && (own(k.GetHttpAddress()) || own(k.GetGrpcAddress()))
	}
	// A host that begins with a dot stands for all names below it.
	covers := func(host string) bool { return host[0] == '.' && strings.HasSuffix(name, hostcheck.Name(host)) }
	if slices.ContainsFunc(m.hosts, func(host string) bool { return own(host) || covers(host) }) {
		return nil
	}
	known := m.cluster.Status().Known
	switch {
	case slices.ContainsFunc(known, ofMember):
		return nil
	case len(known) == 0:
		return apierror.Unavailable(apierror.ReasonStarting,
			"the node has no list of members yet, so it cannot check whether "+name+" is a name of the cluster", apierror.RetryStarting, nil)
	}
	return &apierror.Error{
		Code: apierror.CodePermissionDenied, Reason: apierror.ReasonInvalidRequest,
		Message: "without TLS the node does not answer as " + name + ": use a member's address, or name it with --http-host on every node",
	}
}
