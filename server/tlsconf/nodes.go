package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Nodes distinguishes nodes from other callers by their certificates.
//
// A node's certificate has the URI idnode://CLUSTER/node/TAG among its alternative names, where
// CLUSTER is the id of the node's cluster or * for any. It is for servers and for clients, both by
// name. No application has such a certificate by accident. A DNS name of the form of a tag is not
// enough, since an application may be called shop.
type Nodes struct {
	// Cluster returns the id of the own cluster, in hexadecimal digits. While it is empty, nodes of
	// every cluster count as nodes.
	Cluster func() string
}

// Peer checks that the other side of a connection has shown the certificate of the
// node with a tag, and that the certificate was verified; any node's if tag is empty.
func (n Nodes) Peer(state tls.ConnectionState, tag string) error {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return errors.New("no certificate was verified")
	}
	return n.Check(state.VerifiedChains[0][0], tag)
}

// Check returns nil if a certificate is that of the node with a tag, or of any node
// if tag is empty, in the own cluster. Case does not matter in tags.
func (n Nodes) Check(cert *x509.Certificate, tag string) error {
	if err := n.checkTag(cert, tag); err != nil {
		return err
	}
	if !slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || !slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		return errors.New("it is not for server and client authentication, both by name")
	}
	return nil
}

func (n Nodes) checkTag(cert *x509.Certificate, tag string) error {
	names := nodeNames(cert)
	if len(names) == 0 {
		return fmt.Errorf("it is not a node's certificate: it has no URI %s", NodeURI("*", tag))
	}
	own := ""
	if n.Cluster != nil {
		own = n.Cluster()
	}
	for _, name := range names {
		if (name.cluster == "*" || own == "" || strings.EqualFold(name.cluster, own)) && (tag == "" || strings.EqualFold(name.tag, tag)) {
			return nil
		}
	}
	if own != "" {
		return fmt.Errorf("it is that of %q, and the cluster is %s", names, own)
	}
	return fmt.Errorf("it is that of %q", names)
}

type nodeName struct{ cluster, tag string }

func (n nodeName) String() string { return NodeURI(n.cluster, n.tag).String() }

const nodeScheme = "idnode"

// NodeURI returns the URI of the node with a tag, of the cluster with an id or, for *, of any.
func NodeURI(cluster, tag string) *url.URL {
	return &url.URL{Scheme: nodeScheme, Host: cluster, Path: "/node/" + tag}
}

func nodeNames(cert *x509.Certificate) []nodeName {
	var names []nodeName
	for _, uri := range cert.URIs {
		tag, ok := strings.CutPrefix(uri.Path, "/node/")
		plain := uri.User == nil && uri.RawQuery == "" && uri.Fragment == "" && uri.Opaque == ""
		if ok && plain && uri.Scheme == nodeScheme && uri.Host != "" && isTag(tag) {
			names = append(names, nodeName{uri.Host, strings.ToUpper(tag)})
		}
	}
	return names
}
