package disaster

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestOverTLS: a cluster with certificates is restored with its settings and with
// what its applications know, and recovered though another program listens where a
// lost node was.
func TestOverTLS(t *testing.T) {
	tier.Long(t)
	dir := t.TempDir()
	certs := harness.Certificates(t, "A", "D", "E", "F")
	operator := func(args ...string) []string {
		return with(args, "--tls-ca", filepath.Join(certs, "ca.crt"),
			"--tls-cert", filepath.Join(certs, "client.crt"), "--tls-key", filepath.Join(certs, "client.key"))
	}
	old := harness.StartCluster(t, harness.Config{Size: 1, Direct: true, Certs: certs}).Nodes[0]
	nextOf(t, old)
	must(t, operator("cluster", "set", "max-claims", "4321", "--yes", "--endpoint", old.GRPC)...)
	file := filepath.Join(dir, "x.backup")
	refused(t, 3, "backup", file, "--endpoint", old.GRPC, "--timeout", "2s")
	must(t, operator("backup", file, "--endpoint", old.GRPC)...)
	old.Process.Kill()

	c := harness.NewCluster(t, harness.Config{Direct: true, Certs: certs})
	for i, n := range c.Nodes {
		n.Tag = string("DEF"[i])
	}
	for _, n := range c.Nodes {
		n.Start(t)
	}
	c.WaitReady(t)
	floor := filepath.Join(dir, "floor.csv")
	known := "database,kind,name,value\ndefault,identity,invoices,900\ndefault,claim,invoices/950,\n"
	if err := os.WriteFile(floor, []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, operator("restore", file, "--floor", floor, "--settings", "--yes", "--endpoint", c.Nodes[1].GRPC)...)
	d := c.Nodes[0]
	if got := nextOf(t, d); got != 901 {
		t.Errorf("after 900 came %d", got)
	}
	if all := must(t, operator("cluster", "settings", "--endpoint", d.GRPC)...); !strings.Contains(all, "4321") {
		t.Errorf("the setting was not taken over:\n%s", all)
	}
	stillClaimed(t, d, map[string]bool{"invoices/950": true})
	c.Agree(t)

	for _, n := range c.Nodes {
		n.Process.Kill()
	}
	stranger, err := net.Listen("tcp", c.Nodes[1].GRPC)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	recover := operator("recover", "--data-dir", d.DataDir, "--members", "D", "--skip-ahead", "1000", "--yes")
	if why := refused(t, 1, recover...); !strings.Contains(why, "--assume-lost E") {
		t.Errorf("refused with %s", why)
	}
	must(t, with(recover, "--assume-lost", "E")...)
	d.Start(t)
	d.WaitReady(t)
	if got := nextOf(t, d); got != 1902 {
		t.Errorf("after 901, and 1,000 that were skipped, came %d", got)
	}
}

// nextOf takes the next value of an identity.
func nextOf(t *testing.T, n *harness.Node) int64 {
	t.Helper()
	r, err := n.Ids.NextIdentity(t.Context(), &idnodev1.NextIdentityRequest{Name: "invoices"})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetBlocks()[0].GetFirst()
}
