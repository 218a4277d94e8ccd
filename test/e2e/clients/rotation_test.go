package clients

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestTheCAChanges by the steps of docs/operate/access.md while 64 callers of each client take values and HiLo
// ids: connections of the old CA are still open when it is taken out. No number comes twice, none is missing,
// and no call fails.
func TestTheCAChanges(t *testing.T) {
	tier.Long(t)
	eachLanguage(t, func(t *testing.T, l language) {
		changeCA(t, func(c *harness.Cluster, certs string, b *book) func() { return l.takeIDs(t, c, certs, b) })
	})
	t.Run("go", func(t *testing.T) {
		changeCA(t, func(c *harness.Cluster, certs string, b *book) func() {
			own := tlsOf(certs, certs)
			return takeIDsGo(t, c, client.Config{TLSFiles: client.TLSFiles{CA: own.CA, Cert: own.Cert, Key: own.Key}}, b)
		})
	})
}

func changeCA(t *testing.T, takeIDs func(c *harness.Cluster, certs string, b *book) (stop func())) {
	nodes := []string{"A", "B", "C"}
	certs, fresh := harness.Certificates(t, nodes...), harness.Certificates(t, nodes...)
	c := harness.StartCluster(t, harness.Config{Certs: certs})
	b := &book{ids: make(map[string]bool)}
	stop := takeIDs(c, certs, b)
	b.await(t, 200)
	before := harness.ClientTLS(t, certs, "client")
	replace(t, certs, "ca.crt", append(textOf(t, fresh, "ca.crt"), textOf(t, certs, "ca.crt")...))
	after := harness.ClientTLS(t, fresh, "client")
	after.RootCAs = harness.ClientTLS(t, certs, "client").RootCAs
	awaitHandshakes(t, c, after, true)
	for _, name := range append(nodes, "client") {
		replace(t, certs, name+".key", textOf(t, fresh, name+".key"))
		replace(t, certs, name+".crt", textOf(t, fresh, name+".crt"))
	}
	b.await(t, 200)
	replace(t, certs, "ca.crt", textOf(t, fresh, "ca.crt"))
	awaitHandshakes(t, c, before, false)
	b.await(t, 1000)
	stop()
	b.judge(t)
	for _, n := range c.Nodes {
		n.Client = harness.Dial(t, n.GRPC, certs) // Those of the harness read their files once.
	}
	c.Agree(t)
}

// awaitHandshakes waits until all nodes accept a certificate, or none does.
func awaitHandshakes(t *testing.T, c *harness.Cluster, cfg *tls.Config, accepted bool) {
	t.Helper()
	for _, n := range c.Nodes {
		for deadline := time.Now().Add(time.Minute); ; {
			conn, err := tls.Dial("tcp", n.HTTP, cfg)
			if err == nil {
				_, err = conn.Write([]byte("GET /livez HTTP/1.1\r\nHost: " + n.HTTP + "\r\nConnection: close\r\n\r\n"))
				if err == nil {
					_, err = conn.Read(make([]byte, 1)) // With TLS 1.3 the refusal comes after the handshake.
				}
				_ = conn.Close()
			}
			if (err == nil) == accepted {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("node %s: %v", n.Tag, err)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

func textOf(t *testing.T, folder, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func replace(t *testing.T, folder, name string, text []byte) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
