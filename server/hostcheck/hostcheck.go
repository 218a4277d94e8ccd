// Package hostcheck finds requests under a host name that a foreign site may own. Such a site can
// have its own name lead to a node once its page is loaded (DNS rebinding), and the page would then
// be of the node's origin. The package owns the rule for names that no other party can have; its
// callers say which others are the cluster's.
package hostcheck

import (
	"net"
	"net/http"
	"strings"
)

// Check judges the host name of a request if a foreign site may own it, in lower case and
// without its port; any other is good. Over TLS every name is: the certificate prevents it.
func Check(r *http.Request, judge func(name string) error) error {
	name := Name(r.Host)
	if r.TLS != nil || isLocalName(name) {
		return nil
	}
	return judge(name)
}

// Name returns the name in an address, or in a name alone, in lower case.
func Name(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// isLocalName says whether no foreign site can have the name: an IP address, or one of this machine. One without a dot
// is of whoever answers for it in a network: it may be another's. A request that names no host is of no browser.
func isLocalName(name string) bool {
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || net.ParseIP(name) != nil
}
