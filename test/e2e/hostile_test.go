package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// callLimit is what a call of a good client may take while a node is attacked, and
// usualLimit what ninety-nine of a hundred may: far above what they take alone, and
// far below what a client would give up at. The attacker shares the processors.
const (
	callLimit  = 5 * time.Second
	usualLimit = time.Second
	// oneElection is how long there may be no leader after a machine stood still.
	oneElection = time.Second
)

// hostile is a cluster with TLS, of which one node is attacked.
type hostile struct {
	*harness.Cluster
	certs string
	node  *harness.Node
	// member is the tag of another node.
	member string
	ledger *harness.Ledger
}

// startHostile starts a cluster of the program under test, or of another.
func startHostile(t *testing.T, program string) *hostile {
	t.Helper()
	certs := harness.CertificatesWith(t, []string{"attacker", "nobody"}, "A", "B", "C", "X")
	c := harness.StartCluster(t, harness.Config{Certs: certs, Direct: true, Program: program, Flags: []string{"--admin", "*"}})
	h := &hostile{Cluster: c, certs: certs, ledger: harness.NewLedger(t)}
	h.node = c.Leader(t)
	h.member = c.Nodes[slices.IndexFunc(c.Nodes, func(n *harness.Node) bool { return n != h.node })].Tag
	return h
}

// stranger is the configuration of a caller that trusts every server, and shows the
// certificate with this name; "" shows none.
func (h *hostile) stranger(t *testing.T, name string) *tls.Config {
	t.Helper()
	cfg := harness.ClientTLS(t, h.certs, name)
	cfg.InsecureSkipVerify = true
	return cfg
}

// ofAnotherCA shows a certificate with all the right names, of a CA of its own.
func (h *hostile) ofAnotherCA(t *testing.T, name string) *tls.Config {
	t.Helper()
	cfg := harness.ClientTLS(t, harness.Certificates(t, "A", "B", "C", "X"), name)
	cfg.InsecureSkipVerify = true
	return cfg
}

// expired shows a certificate of the cluster's CA, with the names of a member, that
// ended an hour ago.
func (h *hostile) expired(t *testing.T) *tls.Config {
	t.Helper()
	ca, err := tls.LoadX509KeyPair(filepath.Join(h.certs, "ca.crt"), filepath.Join(h.certs, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{h.member}, URIs: []*url.URL{{Scheme: "idnode", Host: "*", Path: "/node/" + h.member}},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// upTo is the configuration with no newer version of TLS.
func upTo(version uint16, cfg *tls.Config) *tls.Config {
	cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS10, version
	return cfg
}

// firstWords are the first bytes that a port for callers accepts of an authorised one.
func (h *hostile) firstWords(port string) []byte {
	if port == h.node.GRPC {
		return append([]byte(preface), frame(frameSettings, 0, 0, nil)...)
	}
	return []byte("GET /build/version HTTP/1.1\r\nHost: x\r\n\r\n")
}

// answers says whether a port answers a caller with this certificate; the Raft port,
// whether it takes the caller for a member.
func (h *hostile) answers(t *testing.T, port string, cfg *tls.Config) bool {
	t.Helper()
	if port == h.node.Raft {
		return letsIn(t, h.Cluster, h.node, h.member, cfg)
	}
	raw, err := net.Dial("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(10 * time.Second))
	if port == h.node.GRPC {
		cfg.NextProtos = []string{"h2"}
	}
	conn := tls.Client(raw, cfg)
	if conn.Handshake() != nil {
		return false
	}
	// With TLS 1.3 a client learns only afterwards whether its certificate was accepted.
	if _, err := conn.Write(h.firstWords(port)); err != nil {
		return false
	}
	n, _ := conn.Read(make([]byte, 512))
	return n > 0
}

// TestHostileHandshakes: a caller without the right certificate, or with an old
// version of TLS, gets no answer on any port to any request.
func TestHostileHandshakes(t *testing.T) {
	h := startHostile(t, "")
	api := map[string]string{"gRPC": h.node.GRPC, "HTTP": h.node.HTTP}
	for name, port := range api {
		if !h.answers(t, port, h.stranger(t, "client")) {
			t.Errorf("the %s port does not answer a good client: this test finds nothing", name)
		}
		if !h.answers(t, port, upTo(tls.VersionTLS12, h.stranger(t, "client"))) {
			t.Errorf("the %s port does not answer a good client with TLS 1.2", name)
		}
	}
	if !h.answers(t, h.node.Raft, h.stranger(t, h.member)) {
		t.Error("the Raft port does not answer a member: this test finds nothing")
	}
	every := map[string]string{"gRPC": h.node.GRPC, "HTTP": h.node.HTTP, "Raft": h.node.Raft}
	for name, port := range every {
		for who, cfg := range map[string]*tls.Config{
			"no certificate": h.stranger(t, ""), "another CA": h.ofAnotherCA(t, h.member), "expired": h.expired(t),
			"TLS 1.1": upTo(tls.VersionTLS11, h.stranger(t, h.member)), "TLS 1.0": upTo(tls.VersionTLS10, h.stranger(t, h.member)),
		} {
			if h.answers(t, port, cfg) {
				t.Errorf("the %s port answers: %s", name, who)
			}
		}
	}
	for who, cfg := range map[string]*tls.Config{
		"a client": h.stranger(t, "client"), "a node of the CA that is no member": h.stranger(t, "X"),
		"a member, with TLS 1.2": upTo(tls.VersionTLS12, h.stranger(t, h.member)), "another member": h.stranger(t, h.node.Tag),
	} {
		if h.answers(t, h.node.Raft, cfg) {
			t.Errorf("the Raft port answers: %s", who)
		}
	}
	take(t, h.node, h.ledger, "orders")
}

// ports are those of the attacked node.
func (h *hostile) ports() []string { return []string{h.node.GRPC, h.node.HTTP, h.node.Raft} }

// silent opens connections, says the same on each, and waits until the node has
// closed them.
func (h *hostile) silent(t *testing.T, n int, words []byte) {
	t.Helper()
	ports := h.ports()
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	for i := range n {
		conn, err := net.DialTimeout("tcp", ports[i%len(ports)], callLimit)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		open = append(open, conn)
		conn.Write(words)
	}
	deadline := time.Now().Add(20 * time.Second)
	for i, conn := range open {
		conn.SetReadDeadline(deadline)
		// Nothing but the end, or a message that the handshake failed.
		if _, err := io.Copy(io.Discard, conn); err != nil && os.IsTimeout(err) {
			t.Fatalf("connection %d is still open after %s", i, 20*time.Second)
		}
	}
}

// secured opens a connection with the certificate of this name.
func (h *hostile) secured(t *testing.T, name, port string) *tls.Conn {
	t.Helper()
	cfg := h.stranger(t, name)
	if port == h.node.GRPC {
		cfg.NextProtos = []string{"h2"}
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", port, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	return conn
}

// idle opens connections of good clients that then say nothing.
func (h *hostile) idle(t *testing.T, n int) {
	for i := range n {
		defer h.secured(t, "attacker", []string{h.node.GRPC, h.node.HTTP}[i%2]).Close()
	}
}

// slowHeaders sends a request so slowly that it would never end.
func (h *hostile) slowHeaders(t *testing.T) {
	var slow sync.WaitGroup
	defer slow.Wait()
	for range 50 {
		conn := h.secured(t, "attacker", h.node.HTTP)
		slow.Go(func() {
			io.WriteString(conn, "GET /build/version HTTP/1.1\r\n")
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for range 100 {
				<-tick.C
				if _, err := io.WriteString(conn, "x"); err != nil {
					return
				}
			}
			t.Error("the node reads headers for 20 s")
		})
	}
}

// Frames of HTTP/2, of which gRPC consists.
const (
	preface       = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
)

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// ended says whether the other side ends a connection, whatever it says before.
func ended(conn net.Conn) bool {
	_, err := io.Copy(io.Discard, conn)
	return err == nil || !os.IsTimeout(err)
}

// hugeFrames announces, and sends, what is larger than anything may be.
func (h *hostile) hugeFrames(t *testing.T) {
	huge := make([]byte, 1<<24-1)
	for _, kind := range []byte{frameData, frameHeaders, frameSettings, 0xfa} {
		conn := h.secured(t, "attacker", h.node.GRPC)
		conn.Write(append([]byte(preface), frame(frameSettings, 0, 0, nil)...))
		conn.Write(frame(kind, 0, 1, huge))
		if !ended(conn) {
			t.Errorf("a frame of kind %d and 16 MiB is taken", kind)
		}
	}
	member := harness.ClientTLS(t, h.certs, "B")
	member.InsecureSkipVerify = true
	conn, err := tls.Dial("tcp", h.node.Raft, member)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	conn.Write(huge)
	if !ended(conn) {
		t.Error("the Raft port takes 16 MiB that are no greeting")
	}
}

// hugeHeaders sends more of them than a call needs.
func (h *hostile) hugeHeaders(t *testing.T) {
	for _, size := range []int{32 << 10, 1 << 20, 8 << 20} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		ctx = metadata.AppendToOutgoingContext(ctx, "x", strings.Repeat("x", size))
		_, err := harness.DialAs(t, h.node.GRPC, h.certs, "attacker").Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "orders"})
		cancel()
		if err == nil {
			t.Errorf("gRPC headers of %d bytes are taken", size)
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: h.stranger(t, "attacker")}, Timeout: 20 * time.Second}
		req, err := http.NewRequest(http.MethodGet, "https://"+h.node.HTTP+"/build/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X", strings.Repeat("x", size))
		res, err := client.Do(req)
		if err == nil {
			res.Body.Close()
			if res.StatusCode < 400 {
				t.Errorf("HTTP headers of %d bytes are taken", size)
			}
		}
		client.CloseIdleConnections()
	}
}

// hugeMessages sends messages and bodies that are larger than any call.
func (h *hostile) hugeMessages(t *testing.T) {
	client := harness.DialAs(t, h.node.GRPC, h.certs, "attacker")
	for range 4 {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		_, err := client.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: strings.Repeat("x", 32<<20)})
		cancel()
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a message of 32 MiB: %v", err)
		}
	}
}

// resetters are the connections that reset calls at a time, resetsEach how many each resets,
// over as many more as the node ends: as many in all as kept a node without the bound busy
// for seconds.
const (
	resetters  = 24
	resetsEach = 100_000
)

// callHeaders are those of a call of NextIdentity: :method POST, :scheme https, :path, :authority,
// content-type, te.
func callHeaders() []byte {
	return slices.Concat([]byte{0x83, 0x87}, literal(0x04, "", idnodev1.IdsService_NextIdentity_FullMethodName), literal(0x01, "", "x"),
		literal(0, "content-type", "application/grpc"), literal(0, "te", "trailers"))
}

// rapidResets begins calls and takes them back before they can be answered.
func (h *hostile) rapidResets(t *testing.T) {
	block := callHeaders()
	begin := append([]byte(preface), frame(frameSettings, 0, 0, nil)...)
	conn := h.secured(t, "client", h.node.GRPC)
	conn.Write(begin)
	conn.Write(frame(frameHeaders, 0x4, 1, block))
	conn.Write(frame(frameData, 0x1, 1, []byte{0, 0, 0, 0, 3, 0x12, 1, 'x'}))
	if !answered(conn, 1) {
		t.Error("a call that is not taken back is not answered: this attack is none")
	}
	cfg := h.stranger(t, "attacker")
	cfg.NextProtos = []string{"h2"}
	var attackers sync.WaitGroup
	for range resetters {
		attackers.Go(func() {
			for left := resetsEach; left > 0; {
				conn, err := tls.Dial("tcp", h.node.GRPC, cfg)
				if err != nil {
					left -= resetsEach / 100 // It is as good as closed.
					continue
				}
				conn.SetDeadline(time.Now().Add(30 * time.Second))
				_, _ = conn.Write(begin)
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				left -= reset(conn, block, left)
				conn.Close()
			}
		})
	}
	attackers.Wait()
}

// reset resets so many calls, or as many as the node takes, and returns how many.
func reset(conn net.Conn, block []byte, most int) (done int) {
	var burst []byte
	for done < most {
		stream := uint32(2*done + 1)
		burst = append(burst, frame(frameHeaders, 0x4, stream, block)...)
		burst = append(burst, frame(frameReset, 0, stream, []byte{0, 0, 0, 8})...)
		if done++; len(burst) > 64<<10 || done == most {
			if _, err := conn.Write(burst); err != nil {
				break // The node has had enough.
			}
			burst = burst[:0]
		}
	}
	return done
}

// answered reads frames until the headers of an answer come on a stream.
func answered(conn net.Conn, stream uint32) bool {
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(conn, head); err != nil {
			return false
		}
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, conn, size); err != nil {
			return false
		}
		if head[3] == frameHeaders && binary.BigEndian.Uint32(head[5:]) == stream {
			return true
		}
	}
}

// literal is a header field of HPACK that goes into no table; index names it if
// it has no name.
func literal(index byte, name, value string) []byte {
	b := []byte{index}
	if name != "" {
		b = append(append(b, byte(len(name))), name...)
	}
	return append(append(b, byte(len(value))), value...)
}

// churn opens connections and closes them at once.
func (h *hostile) churn(t *testing.T) {
	ports := h.ports()
	for i := range 3_000 {
		conn, err := net.DialTimeout("tcp", ports[i%len(ports)], callLimit)
		if err != nil {
			t.Fatal(err)
		}
		// Without the usual goodbye.
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}
