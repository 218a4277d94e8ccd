package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/tlsconf"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// rotationPause is between two changes of the certificates: a node looks every
// second.
const rotationPause = 1200 * time.Millisecond

// TestCertificateRotation: certificates, and then the CA, are replaced under load,
// more than a dozen times. No call fails, new clients get in each time with the
// newest certificates, and a node that starts afterwards finds the others. Only a caller
// that has not changed over when the old CA goes is out, also on an open connection.
func TestCertificateRotation(t *testing.T) {
	tier.Long(t)
	certs := certificates(t)
	c := harness.StartCluster(t, harness.Config{Certs: certs, Direct: true})
	r := &rotation{Cluster: c, certs: certs, ledger: harness.NewLedger(t)}
	r.load = harness.StartLoad(r.ledger, c.Nodes, "orders", 2, callLimit)
	defer func() { r.load.Stop() }()
	for range 6 {
		r.renew(t)
	}
	r.changeCA(t)
	for range 3 {
		r.renew(t)
	}
	r.spoil(t)
	r.load.Stop()
	noFailures(t, r.load)
	c.Nodes[2].Process.Stop(t)
	c.Nodes[2].Start(t)
	c.WaitReady(t)
	take(t, c.Nodes[2], r.ledger, "orders")
}

// rotation replaces the certificates of a cluster.
type rotation struct {
	*harness.Cluster
	certs  string
	ledger *harness.Ledger
	load   *harness.Load
	// old is a client that trusts both CAs, and has a certificate of the old one.
	old *tls.Config
}

// step waits until every node has looked, and lets new clients call each.
func (r *rotation) step(t *testing.T) {
	t.Helper()
	timer := time.NewTimer(rotationPause)
	<-timer.C
	for _, n := range r.Nodes {
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		fresh := harness.Dial(t, n.GRPC, r.certs)
		_, err := fresh.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "other"})
		cancel()
		fresh.Conn.Close()
		if err != nil {
			t.Errorf("a new client of node %s: %v", n.Tag, err)
		}
	}
}

// renew replaces all certificates by others of the CA that is there.
func (r *rotation) renew(t *testing.T) {
	t.Helper()
	err := tlsconf.MakeCerts(r.certs, tlsconf.MakeOptions{Nodes: []string{"A", "B", "C", "X"}, Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	r.step(t)
}

// changeCA replaces the CA as docs/operate/access.md says: both are trusted first, then
// come the new certificates, then the old CA goes.
func (r *rotation) changeCA(t *testing.T) {
	t.Helper()
	fresh := harness.Certificates(t, "A", "B", "C", "X")
	both := bytes.Join([][]byte{r.read(t, fresh, "ca.crt"), r.read(t, r.certs, "ca.crt")}, nil)
	r.replace(t, "ca.crt", both)
	r.old = harness.ClientTLS(t, r.certs, "client")
	r.step(t)
	for _, name := range []string{"A", "B", "C", "client"} {
		r.replace(t, name+".crt", r.read(t, fresh, name+".crt"))
		r.replace(t, name+".key", r.read(t, fresh, name+".key"))
		r.step(t)
	}
	r.load.Stop()
	noFailures(t, r.load)
	stream, get := r.open(t)
	r.replace(t, "ca.crt", r.read(t, fresh, "ca.crt"))
	r.replace(t, "ca.key", r.read(t, fresh, "ca.key"))
	if err := endOf(stream); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "CN=idnode client") {
		t.Errorf("the stream of a client of the old CA ends with %v", err)
	}
	if status, closes := get(); status != http.StatusUnauthorized || !closes {
		t.Errorf("a client of the old CA is answered over HTTP with %d", status)
	}
	r.step(t)
	for _, n := range r.Nodes {
		n.Client = harness.Dial(t, n.GRPC, r.certs)
	}
	r.load = harness.StartLoad(r.ledger, r.Nodes, "orders", 2, callLimit)
}

// open opens connections to a node with a certificate of the old CA, which the load has
// shown: a stream, and one over HTTP, which get uses.
func (r *rotation) open(t *testing.T) (stream idnodev1.IdsService_ExchangeClient, get func() (status int, closes bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	stream, err := r.Nodes[0].Ids.Exchange(ctx)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: r.old}
	t.Cleanup(transport.CloseIdleConnections)
	get = func() (int, bool) {
		url := "https://" + r.Nodes[0].HTTP + "/idnode.v1.ClusterService/GetStatus"
		res, err := (&http.Client{Transport: transport, Timeout: callLimit}).Post(url, "application/json", strings.NewReader("{}"))
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Close
	}
	if status, _ := get(); status != http.StatusOK {
		t.Fatal(status)
	}
	return stream, get
}

// endOf makes calls in a stream until it ends, each after the answer to the one before, and returns why it ended.
func endOf(stream idnodev1.IdsService_ExchangeClient) error {
	between := time.NewTicker(20 * time.Millisecond)
	defer between.Stop()
	for n := uint64(1); ; n++ {
		<-between.C
		get := &idnodev1.Call_Generate{Generate: &idnodev1.GenerateRequest{Template: "users/"}}
		_ = stream.Send(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{{Correlation: n, Call: get}}}) // Recv says why it failed.
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

// spoil writes what is no certificate: the nodes go on with what they have.
func (r *rotation) spoil(t *testing.T) {
	t.Helper()
	good := r.read(t, r.certs, "B.crt")
	r.replace(t, "B.crt", []byte("nothing"))
	r.step(t)
	r.step(t)
	r.replace(t, "B.crt", good)
	r.step(t)
}

func (r *rotation) read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (r *rotation) replace(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join(r.certs, name)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
