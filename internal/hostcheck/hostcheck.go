// Package hostcheck tells requests under the cluster's own host names from those
// under a name that a foreign site may own. Such a site can have its own name lead
// to a node once its page is loaded (DNS rebinding), and that page would then be of
// the same origin as the node.
//
// It owns the rule. What a refusal looks like is its callers' business.
package hostcheck

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// Foreign returns the host name of a request if a foreign site may own it, and ""
// otherwise. addresses returns the host:port of members; it is called only if it
// matters. Over TLS there are none: the certificate prevents it.
func Foreign(r *http.Request, addresses func() []string) string {
	name := hostName(r.Host)
	if r.TLS != nil || isLocalName(name) {
		return ""
	}
	if slices.ContainsFunc(addresses(), func(address string) bool { return hostName(address) == name }) {
		return ""
	}
	return name
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
