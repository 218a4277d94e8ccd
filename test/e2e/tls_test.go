package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// certificates makes certificates for nodes A, B, C and a stranger of the same
// CA, as an operator would.
func certificates(t *testing.T) string {
	t.Helper()
	return harness.Certificates(t, "A", "B", "C", "X")
}

// TestMutualTLS: a cluster with certificates serves callers that have one, and
// lets only members talk to the Raft port and to the calls between nodes.
func TestMutualTLS(t *testing.T) {
	certs := certificates(t)
	c := harness.StartCluster(t, harness.Config{Certs: certs})
	ledger := harness.NewLedger(t)
	for _, n := range c.Nodes {
		take(t, n, ledger, "orders")
	}
	n := c.Nodes[0]
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	t.Run("no certificate on the gRPC port", func(t *testing.T) {
		conn, err := tls.Dial("tcp", n.GRPC, &tls.Config{RootCAs: harness.ClientTLS(t, certs, "").RootCAs, NextProtos: []string{"h2"}})
		if err == nil {
			conn.SetDeadline(time.Now().Add(5 * time.Second))
			_, err = conn.Read(make([]byte, 1)) // TLS 1.3 tells a client without a certificate after its handshake
			conn.Close()
		}
		if err == nil {
			t.Error("the server talked to a client without a certificate")
		}
	})
	t.Run("calls between nodes from an application", func(t *testing.T) {
		// It shows the certificate "client".
		_, err := peerv1.NewMemberServiceClient(n.Conn).Ping(ctx, &peerv1.PingRequest{})
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("ping by an application: %v, want Unimplemented", err)
		}
		_, err = peerv1.NewJoinServiceClient(n.Conn).Join(ctx, &peerv1.JoinRequest{Member: newcomer("D")})
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("join by an application: %v, want PermissionDenied", err)
		}
	})
	issue(t, certs, "host-b", x509.Certificate{
		DNSNames: []string{"B"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	for _, name := range []string{"B", "", "client", "X", "C", "host-b"} {
		t.Run("the Raft port with the certificate of "+name, func(t *testing.T) {
			if in := letsIn(t, c, n, "B", harness.ClientTLS(t, certs, name)); in != (name == "B") {
				t.Errorf("it is let in as B: %v", in)
			}
		})
	}
	for _, n := range c.Nodes {
		take(t, n, ledger, "orders")
	}
}

func newcomer(tag string) *raftlogv1.Member {
	return &raftlogv1.Member{
		Id: []byte("0123456789abcdef"), Tag: tag, GrpcAddress: "127.0.0.1:1", RaftAddress: "127.0.0.1:2", LogFormat: 1,
	}
}

// identities returns the cluster's id, and the members' ids by tag.
func identities(ctx context.Context, t *testing.T, c *harness.Cluster) (cluster []byte, members map[string][]byte) {
	t.Helper()
	r, err := c.Nodes[0].Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	decode := func(id string) []byte {
		raw, err := hex.DecodeString(id)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	members = map[string][]byte{}
	for _, m := range r.Members {
		members[m.Tag] = decode(m.Id)
	}
	return decode(r.ClusterId), members
}

// letsIn says whether a node's Raft port takes the caller for a member. The caller says what the
// member would say, in a probe, which is not compared with the member's own process: only the
// certificate tells it from the member.
func letsIn(t *testing.T, c *harness.Cluster, n *harness.Node, tag string, cfg *tls.Config) bool {
	t.Helper()
	cluster, ids := identities(t.Context(), t, c)
	greeting := slices.Concat([]byte("idnraft\x01\x01"), cluster, ids[tag], ids[n.Tag],
		make([]byte, 8+1+6*8+2)) // Of a process without a number, an empty disk, no extension.
	raw, err := net.Dial("tcp", n.Raft)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(5 * time.Second))
	cfg.ServerName = n.Tag
	conn := tls.Client(raw, cfg)
	answer := make([]byte, len("idnraft\x01")+1)
	_, err = conn.Write(greeting) // After TLS's handshake.
	if err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	return err == nil && answer[len(answer)-1] == 0
}

// TestJSONOverTLS: a call as JSON has the rights of its certificate, and without one
// there is no call.
func TestJSONOverTLS(t *testing.T) {
	certs := harness.CertificatesWith(t, []string{"webshop"}, "A")
	n := harness.StartCluster(t, harness.Config{Size: 1, Direct: true, Certs: certs}).Nodes[0]
	harness.SetRoles(t, n, harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER),
		harness.Role("shop", "webshop", idnodev1.Right_RIGHT_GENERATE))
	const next, roles = "/idnode.v1.IdsService/NextIdentity", "/idnode.v1.ClusterService/GetRoles"
	for _, tt := range []struct{ caller, method, body, want string }{
		{"webshop", next, `{"name":"orders"}`, `"first":"1"`},
		{"webshop", roles, `{}`, "PERMISSION_DENIED"},
		{"client", next, `{"name":"orders"}`, "PERMISSION_DENIED"},
		{"client", roles, `{}`, `"webshop"`},
		{"webshop", next, `{"name":"orders"}`, `"first":"2"`}, // The call that was refused took nothing.
		{"A", next, `{"name":"orders"}`, "PERMISSION_DENIED"}, // A node is no caller with rights.
		{"", next, `{"name":"orders"}`, ""},
	} {
		transport := &http.Transport{TLSClientConfig: harness.ClientTLS(t, certs, tt.caller)}
		answer, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Post("https://"+n.HTTP+tt.method, "application/json",
			strings.NewReader(tt.body))
		transport.CloseIdleConnections()
		if err != nil {
			if tt.caller != "" {
				t.Errorf("%q calls %s: %v", tt.caller, tt.method, err)
			}
			continue
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		status := http.StatusOK
		if tt.want == "PERMISSION_DENIED" {
			status = http.StatusForbidden
		}
		if tt.caller == "" || err != nil || answer.StatusCode != status || !strings.Contains(string(text), tt.want) {
			t.Errorf("%q calls %s: %d %s %v, want %s", tt.caller, tt.method, answer.StatusCode, text, err, tt.want)
		}
	}
}
