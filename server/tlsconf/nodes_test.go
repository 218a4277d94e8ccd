package tlsconf_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"strings"
	"testing"

	"github.com/idnode/idnode/server/tlsconf"
)

// certificate is one for the given uses, with DNS names and URIs.
func certificate(t *testing.T, names string, usages ...x509.ExtKeyUsage) *x509.Certificate {
	t.Helper()
	cert := &x509.Certificate{ExtKeyUsage: usages}
	for name := range strings.FieldsSeq(names) {
		if !strings.Contains(name, ":") {
			cert.DNSNames = append(cert.DNSNames, name)
			continue
		}
		uri, err := url.Parse(name)
		must(t, err)
		cert.URIs = append(cert.URIs, uri)
	}
	return cert
}

const (
	serves = x509.ExtKeyUsageServerAuth
	calls  = x509.ExtKeyUsageClientAuth
)

// TestOnlyANodesCertificateMakesANode: it needs the URI of a node of this cluster,
// and both uses by name.
func TestOnlyANodesCertificateMakesANode(t *testing.T) {
	own := strings.Repeat("0a", 16)
	nodes := tlsconf.Nodes{Cluster: func() string { return own }}
	for names, is := range map[string]string{
		"idnode://*/node/SHOP": "SHOP", "idnode://*/node/shop SHOP": "SHOP",
		"idnode://" + own + "/node/B": "B", "idnode://" + strings.ToUpper(own) + "/node/B": "B",
		"spiffe://x/y idnode://*/node/B": "B",
		"SHOP":                           "", "shop": "", "a b c d": "", "idnode": "", "": "",
		"idnode://" + strings.Repeat("0b", 16) + "/node/B B": "",
		"idnode:///node/B":             "",
		"idnode:/node/B":               "",
		"idnode://*/node/":             "",
		"idnode://*/node/ABCDE":        "",
		"idnode://*/node/B/C":          "",
		"idnode://*/client/B":          "",
		"idnode://x@*/node/B":          "",
		"idnode://*/node/B?C":          "",
		"idnode://*/node/B#C":          "",
		"spiffe://*/node/B":            "",
		"https://x/idnode://*/node/B":  "",
		"idnode://**/node/B":           "",
		"idnode://" + own + "0/node/B": "",
	} {
		cert := certificate(t, names, serves, calls)
		for _, tag := range []string{"SHOP", "B", "A"} {
			if err := nodes.Check(cert, tag); (err == nil) != (is == tag) {
				t.Errorf("%q as node %s: %v", names, tag, err)
			}
		}
		if err := nodes.Check(cert, ""); (err == nil) != (is != "") {
			t.Errorf("%q as any node: %v", names, err)
		}
	}
	for _, usages := range [][]x509.ExtKeyUsage{{}, {serves}, {calls}, {x509.ExtKeyUsageAny}, {serves, x509.ExtKeyUsageAny}} {
		if err := nodes.Check(certificate(t, "idnode://*/node/B B", usages...), "B"); err == nil {
			t.Errorf("a certificate for %v is a node's", usages)
		}
	}
	if err := (tlsconf.Nodes{Cluster: func() string { return "" }}).Check(certificate(t, "idnode://"+own+"/node/B", serves,
		calls), "B"); err != nil {
		t.Errorf("before there is a cluster: %v", err)
	}
}

// TestWhatNobodyVerifiedIsNoNode, whatever names it has.
func TestWhatNobodyVerifiedIsNoNode(t *testing.T) {
	cert := certificate(t, "idnode://*/node/B", serves, calls)
	state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	if err := (tlsconf.Nodes{}).Peer(state, "B"); err == nil {
		t.Error("a certificate that was not verified made a node")
	}
	state.VerifiedChains = [][]*x509.Certificate{{cert}}
	if err := (tlsconf.Nodes{}).Peer(state, "B"); err != nil {
		t.Error(err)
	}
}
