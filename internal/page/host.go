package page

import (
	"net"
	"net/http"
	"strings"

	"github.com/idnode/idnode/internal/service"
)

// checkHost refuses a call under a host name that is not the cluster's: a foreign
// site can have its own name lead to this node once its page is loaded, and that
// page would then be of the same origin. Over TLS the certificate prevents it.
func (p *Page) checkHost(r *http.Request) error {
	name := hostName(r.Host)
	if r.TLS != nil || isLocalName(name) || p.isMember(name) {
		return nil
	}
	return &problem{
		Status: http.StatusForbidden, Reason: service.ReasonInvalidRequest,
		Message: "the page is not served as " + name + ": open it under the node's address, " +
			"or advertise that name with --advertise-http on a node of the cluster",
	}
}

func hostName(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// isLocalName says whether no foreign site can have the name: an IP address, a
// name without a dot, or one of this machine.
func isLocalName(name string) bool {
	return net.ParseIP(name) != nil || !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost")
}

func (p *Page) isMember(name string) bool {
	for _, m := range p.service.GetStatus().Members {
		if name == hostName(m.HTTPAddress) || name == hostName(m.GRPCAddress) {
			return true
		}
	}
	return false
}
