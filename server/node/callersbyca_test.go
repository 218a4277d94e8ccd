package node

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idnode/idnode/server/tlsconf"
)

// TestCallersByCA: an operator sees at /metrics, and in the members' list, whose certificates the open connections of both ports
// have, also where the old and the new CA have one subject, and a CA that nobody is on as 0.
func TestCallersByCA(t *testing.T) {
	t.Parallel()
	c := configs(t, "A")["A"]
	secured(t, c)
	olds, news := filepath.Dir(c.TLSCA), t.TempDir()
	for _, dir := range []string{olds, news} {
		if err := tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{"B"}}); err != nil {
			t.Fatal(err)
		}
	}
	var both []byte
	for _, dir := range []string{olds, news} {
		ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, ca...)
	}
	c.TLSCA = filepath.Join(t.TempDir(), "both.crt")
	if err := os.WriteFile(c.TLSCA, both, 0o600); err != nil {
		t.Fatal(err)
	}
	dialler := func(dir string, protocols ...string) *tls.Config {
		m, err := tlsconf.LoadClient(tlsconf.Files{Cert: filepath.Join(dir, "B.crt"), Key: filepath.Join(dir, "B.key"), CA: c.TLSCA})
		if err != nil {
			t.Fatal(err)
		}
		cfg := m.Client("A")
		cfg.NextProtos = protocols
		return cfg
	}
	n := run(t, c)
	n.client.Transport, n.url = &http.Transport{TLSClientConfig: dialler(olds)}, "https://"+n.HTTPAddr()
	n.ready()
	names := n.certs.CAs()
	callers := func(old, new float64) func() bool {
		return func() bool {
			got := n.scrape()
			of := func(ca string) float64 { return got[`idnode_tls_callers{ca="`+ca+`"}`] }
			return len(names) == 2 && names[0] != names[1] && strings.HasPrefix(names[0], "CN=") && of(names[0]) == old && of(names[1]) == new
		}
	}
	n.until("the connection of HTTP", callers(1, 0))
	conn, err := tls.Dial("tcp", n.GRPCAddr(), dialler(news, "h2"))
	if err != nil {
		t.Fatal(err)
	}
	n.until("the connection of gRPC", callers(1, 1))
	n.until("both, as members hear of them", func() bool {
		all := n.service.Status().Message(false).GetSelf().GetCallers()
		return len(all) == 2 && all[0].GetConnections() == 1 && all[1].GetConnections() == 1
	})
	_ = conn.Close()
	n.until("its end", callers(1, 0))
}
