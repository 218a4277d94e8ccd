package e2e

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// issue signs a certificate with the cluster's CA, as a company's CA does for every
// application. It is valid for an hour, unless it says otherwise.
func issue(t *testing.T, certs, name string, cert x509.Certificate) {
	t.Helper()
	ca, err := tls.LoadX509KeyPair(filepath.Join(certs, "ca.crt"), filepath.Join(certs, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert.SerialNumber = big.NewInt(time.Now().UnixNano())
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), cmp.Or(cert.NotAfter, time.Now().Add(time.Hour))
	der, err := x509.CreateCertificate(rand.Reader, &cert, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(filepath.Join(certs, name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAStrangersCertificateMakesNoMember: an application called shop is denied
// everything by the roles, and does not become a member by its name, which has the
// form of a node tag; neither with the program nor with one of its own.
func TestAStrangersCertificateMakesNoMember(t *testing.T) {
	certs := harness.Certificates(t, "A", "B", "C")
	c := harness.StartCluster(t, harness.Config{Certs: certs})
	harness.SetRoles(t, c.Nodes[0], harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER))
	issue(t, certs, "shop", x509.Certificate{DNSNames: []string{"shop"}})
	issue(t, certs, "many", x509.Certificate{
		DNSNames:    []string{"shop", "web", "mail", "data"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	for _, name := range []string{"shop", "many"} {
		n := c.Stranger(t, "SHOP", "--join", c.Nodes[0].GRPC)
		n.Certify(name)
		n.Start(t)
		ends(t, n, "certificate")
		asks := peerv1.NewJoinServiceClient(harness.DialAs(t, c.Nodes[1].GRPC, certs, name).Conn)
		if _, err := asks.Join(t.Context(), &peerv1.JoinRequest{Member: newcomer("SHOP")}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s asked for membership: %v, want PermissionDenied", name, err)
		}
		if letsIn(t, c, c.Nodes[0], "B", harness.ClientTLS(t, certs, name)) {
			t.Errorf("the Raft port answered %s", name)
		}
	}
	hasMembers(t, c, "A", "B", "C")
}

// hasMembers checks that a cluster has these members, and no other.
func hasMembers(t *testing.T, c *harness.Cluster, want ...string) {
	t.Helper()
	c.Agree(t)
	ctx, cancel := context.WithTimeout(t.Context(), changed)
	defer cancel()
	s, err := c.Nodes[0].Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, m := range s.Members {
		have = append(have, m.Tag)
	}
	if !slices.Equal(have, want) {
		t.Errorf("the members are %v, want %v", have, want)
	}
}

// withToken puts a token into a file, and returns the flag of a node that joins by it.
func withToken(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--join-token-file=" + file
}

// TestJoiningNeedsATokenOrTheRight: where there are roles, the certificate of a node
// alone does not let it in. A token does so once, and only the node that it is for.
func TestJoiningNeedsATokenOrTheRight(t *testing.T) {
	t.Parallel()
	certs := harness.Certificates(t, "A", "B", "C", "D", "E", "F")
	c := harness.StartCluster(t, harness.Config{Certs: certs})
	harness.SetRoles(t, c.Nodes[0], harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER),
		harness.Role("deployer", "F", idnodev1.Right_RIGHT_CLUSTER))
	through := func(n *harness.Node, flags ...string) []string { return append([]string{"--join", n.GRPC}, flags...) }
	with := func(token string) string { return withToken(t, token) }
	turnedAway := func(tag, why string, place []string) {
		n := c.Stranger(t, tag, place...)
		n.Start(t)
		if code := n.Process.Wait(t, changed); code != 5 {
			t.Errorf("node %s ended with exit code %d, want 5", tag, code)
		}
		ends(t, n, why)
	}
	turnedAway("D", "idnode cluster join-token", through(c.Nodes[0]))
	turnedAway("D", "there is no such token", through(c.Nodes[1], with("guessed")))

	token := createJoinToken(t, c.Nodes[1], &idnodev1.CreateJoinTokenRequest{Tag: "D"})
	turnedAway("E", "the token is for node D", through(c.Nodes[0], with(token)))
	d := c.Add(t, "D", through(c.Nodes[2])...)
	_, file, _ := strings.Cut(with(token), "=")
	d.Env = []string{"IDNODE_JOIN_TOKEN_FILE=" + file}
	d.Start(t)
	d.Settled(t)
	awaitVote(t, c.Nodes[0], "D")
	turnedAway("E", "a node has joined by it", through(c.Nodes[0], with(token)))

	f := c.Add(t, "F", through(c.Nodes[0])...)
	f.Start(t)
	f.Settled(t)

	d.Process.Stop(t)
	if err := os.Remove(file); err != nil { // A member needs its token no more.
		t.Fatal(err)
	}
	d.Start(t)
	d.WaitReady(t)
	hasMembers(t, c, "A", "B", "C", "D", "F")
}

// createJoinToken makes a token through n. A try whose answer is lost leaves one that no node
// has.
func createJoinToken(t *testing.T, n *harness.Node, req *idnodev1.CreateJoinTokenRequest) (token string) {
	t.Helper()
	harness.Eventually(t, changed, "a token for "+req.GetTag(), func(ctx context.Context) error {
		r, err := n.Cluster.CreateJoinToken(ctx, req)
		token = r.GetToken()
		return err
	})
	return token
}

// TestARemovedMembersConnectionsEnd: a member that does not end by itself when it is
// removed is cut off by the others.
func TestARemovedMembersConnectionsEnd(t *testing.T) {
	tier.Long(t)
	certs := harness.Certificates(t, "A", "B", "C", "D")
	c := harness.StartCluster(t, harness.Config{Certs: certs})
	harness.SetRoles(t, c.Nodes[0], harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER))
	d := c.Add(t, "D", "--join", c.Nodes[0].GRPC, withToken(t, createJoinToken(t, c.Nodes[0], &idnodev1.CreateJoinTokenRequest{Tag: "D"})))
	d.Start(t)
	d.Settled(t)
	leader := c.Nodes[0]
	awaitVote(t, leader, "D")

	letLead(t, c, leader, leader)
	d.Process.Signal(t, syscall.SIGSTOP) // It hears of nothing.
	if established(t, d, leader.Raft) == 0 {
		t.Error("D has no connection to the leader: this test finds nothing")
	}
	remove(t, leader, "D")
	harness.Eventually(t, changed, "the end of D's connections", func(context.Context) error {
		if n := established(t, d, leader.Raft); n > 0 {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
	if letsIn(t, c, leader, "D", harness.ClientTLS(t, certs, "D")) {
		t.Error("it is let in again")
	}
	d.Process.Kill()
	hasMembers(t, c, "A", "B", "C")
}

// established counts a process's connections to an address that the other end has not closed.
func established(t *testing.T, n *harness.Node, address string) (count int) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", n.Process.Pid())
	open := map[string]bool{}
	files, err := filepath.Glob(proc + "fd/*")
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil {
			open[target] = true
		}
	}
	table, err2 := os.ReadFile(proc + "net/tcp")
	to, err3 := net.ResolveTCPAddr("tcp4", address)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	remote := fmt.Sprintf("%08X:%04X", binary.LittleEndian.Uint32(to.IP.To4()), to.Port)
	const isEstablished = "01"
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); f[2] == remote && f[3] == isEstablished && open["socket:["+f[9]+"]"] {
			count++
		}
	}
	return count
}
