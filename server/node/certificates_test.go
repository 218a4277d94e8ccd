package node

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/tlsconf"
)

// secured gives a node certificates that are good for any cluster, and opens it to all.
func secured(t *testing.T, c *config.Config) {
	t.Helper()
	dir := t.TempDir()
	if err := tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{c.Tag}}); err != nil {
		t.Fatal(err)
	}
	c.Admin = []string{"*"}
	c.TLSCert, c.TLSKey, c.TLSCA = filepath.Join(dir, c.Tag+".crt"), filepath.Join(dir, c.Tag+".key"), filepath.Join(dir, "ca.crt")
}

// certifyFor signs the node's certificate again, for one cluster alone.
func certifyFor(t *testing.T, c *config.Config, cluster string) {
	t.Helper()
	ca, err := tls.LoadX509KeyPair(c.TLSCA, filepath.Join(filepath.Dir(c.TLSCA), "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf := *own.Leaf
	leaf.URIs = []*url.URL{tlsconf.NodeURI(cluster, c.Tag)}
	der, err := x509.CreateCertificate(rand.Reader, &leaf, ca.Leaf, own.Leaf.PublicKey, ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.TLSCert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestACertificateOfAnotherClusterEndsTheStart, as after a recovery, which gives the cluster a
// new id. Other nodes would refuse this node, and it would not know why.
func TestACertificateOfAnotherClusterEndsTheStart(t *testing.T) {
	t.Parallel()
	c := configs(t, "A")["A"]
	secured(t, c)
	other := strings.Repeat("0b", 16)
	certifyFor(t, c, other)
	n := run(t, c) // It has no cluster yet, so any will do.
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := n.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	own := hex.EncodeToString(n.cluster.ClusterID())
	n.stop()
	again, err := New(Options{Config: c})
	if err == nil {
		_ = again.release()
		t.Fatal("it starts")
	}
	if !strings.Contains(err.Error(), own) || !strings.Contains(err.Error(), other) {
		t.Errorf("%v does not name both clusters, %s and %s", err, own, other)
	}
	for _, good := range []string{own, "*"} {
		certifyFor(t, c, good)
		again, err := New(Options{Config: c})
		if err != nil {
			t.Fatalf("with a certificate for %s: %v", good, err)
		}
		if err := again.release(); err != nil {
			t.Error(err)
		}
	}
}
