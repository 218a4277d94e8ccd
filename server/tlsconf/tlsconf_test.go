package tlsconf_test

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/idnode/idnode/server/tlsconf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// makeCerts makes certificates in a folder of their own.
func makeCerts(t *testing.T, nodes ...string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: nodes}))
	return dir
}

func files(dir, name string) tlsconf.Files {
	return tlsconf.Files{
		Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key"), CA: filepath.Join(dir, "ca.crt"),
	}
}

func load(t *testing.T, dir, name string) *tlsconf.Material {
	t.Helper()
	m, err := tlsconf.LoadServer(files(dir, name))
	must(t, err)
	return m
}

// handshake connects the two and returns both sides' states and errors.
func handshake(t *testing.T, server, client *tls.Config) (atServer, atClient tls.ConnectionState, err error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = ln.Close() }()
	deadline := time.Now().Add(10 * time.Second)
	serverErr := make(chan error, 1)
	go func() {
		raw, err := ln.Accept()
		if err != nil {
			serverErr <- err
			return
		}
		defer func() { _ = raw.Close() }()
		_ = raw.SetDeadline(deadline)
		conn := tls.Server(raw, server)
		err = conn.Handshake()
		atServer = conn.ConnectionState()
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		serverErr <- err
	}()
	raw, err := net.Dial("tcp", ln.Addr().String())
	must(t, err)
	_ = raw.SetDeadline(deadline)
	conn := tls.Client(raw, client)
	// With TLS 1.3 a client learns only with its first read that the server
	// refused its certificate.
	_, readErr := conn.Read(make([]byte, 1))
	atClient = conn.ConnectionState()
	_ = conn.Close()
	return atServer, atClient, errors.Join(readErr, <-serverErr)
}

func peerConfigs(t *testing.T, dir, server, client, tag string) (*tls.Config, *tls.Config) {
	t.Helper()
	s, err := load(t, dir, server).PeerServer()
	must(t, err)
	c, err := load(t, dir, client).PeerClient(tag)
	must(t, err)
	return s, c
}

func TestNodesKnowEachOtherByTag(t *testing.T) {
	dir := makeCerts(t, "A", "B", "ZA")
	for _, tag := range []string{"ZA", "za"} {
		server, client := peerConfigs(t, dir, "ZA", "B", tag)
		atServer, atClient, err := handshake(t, server, client)
		must(t, err)
		nodes := tlsconf.Nodes{}
		if err := nodes.Peer(atServer, "B"); err != nil || nodes.Peer(atServer, "ZA") == nil {
			t.Errorf("at the server: %v", err)
		}
		if err := nodes.Peer(atClient, "ZA"); err != nil || nodes.Peer(atClient, "B") == nil {
			t.Errorf("at the client: %v", err)
		}
		if atClient.Version != tls.VersionTLS13 {
			t.Errorf("version %x", atClient.Version)
		}
	}
}

func TestNodesRefuseOthers(t *testing.T) {
	dir, foreign := makeCerts(t, "A", "B"), makeCerts(t, "A", "B")
	server, client := peerConfigs(t, dir, "A", "B", "C")
	if _, _, err := handshake(t, server, client); err == nil {
		t.Error("A was taken for C")
	}
	_, stranger := peerConfigs(t, foreign, "A", "B", "A")
	if _, _, err := handshake(t, server, stranger); err == nil {
		t.Error("a certificate of another CA was accepted")
	}
	bare := &tls.Config{RootCAs: client.RootCAs, ServerName: "A"}
	if _, _, err := handshake(t, server, bare); err == nil {
		t.Error("a client without a certificate was accepted")
	}
	old := client.Clone()
	old.ServerName, old.MinVersion, old.MaxVersion = "A", tls.VersionTLS12, tls.VersionTLS12
	if _, _, err := handshake(t, server, old); err == nil {
		t.Error("TLS 1.2 was accepted between nodes")
	}
}

func TestApplications(t *testing.T) {
	dir := makeCerts(t, "A")
	server := load(t, dir, "A").Server()
	client := load(t, dir, "client")
	for name, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "idnode-a": true, "a": true, "elsewhere": false, "idnode-b": false,
	} {
		atServer, _, err := handshake(t, server, client.Client(name))
		if (err == nil) != want {
			t.Errorf("server name %s: %v", name, err)
		}
		if err := (tlsconf.Nodes{}).Peer(atServer, ""); err == nil {
			t.Error("an application passes for a node")
		}
	}
	onlyCA, err := tlsconf.LoadClient(tlsconf.Files{CA: filepath.Join(dir, "ca.crt")})
	must(t, err)
	if _, _, err := handshake(t, server, onlyCA.Client("localhost")); err == nil {
		t.Error("with a CA, a client without a certificate was accepted")
	}
	f := files(dir, "A")
	f.CA = ""
	open, err := tlsconf.LoadServer(f)
	must(t, err)
	if _, _, err := handshake(t, open.Server(), onlyCA.Client("localhost")); err != nil {
		t.Errorf("without a CA, a client without a certificate was refused: %v", err)
	}
	if _, err := open.PeerServer(); !errors.Is(err, tlsconf.ErrNoCA) {
		t.Errorf("PeerServer without a CA: %v", err)
	}
	if _, err := open.PeerClient("A"); !errors.Is(err, tlsconf.ErrNoCA) {
		t.Errorf("PeerClient without a CA: %v", err)
	}
	if _, err := client.PeerClient(""); err == nil {
		t.Error("PeerClient without a tag")
	}
}

// TestTLS12IsAEADAlone: both sides refuse those of Go's suites that are not AEAD, or have no
// ephemeral keys.
func TestTLS12IsAEADAlone(t *testing.T) {
	for _, rsa := range []bool{false, true} {
		dir, tried := t.TempDir(), 0
		must(t, tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{"A"}, RSA: rsa}))
		a, client := load(t, dir, "A"), load(t, dir, "client").Client("localhost")
		for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
			if !slices.Contains(suite.SupportedVersions, tls.VersionTLS12) || strings.Contains(suite.Name, "_RSA_") != rsa {
				continue
			}
			tried++
			good := strings.HasPrefix(suite.Name, "TLS_ECDHE_") &&
				(strings.Contains(suite.Name, "_GCM_") || strings.Contains(suite.Name, "_POLY1305_"))
			for _, atServer := range []bool{true, false} {
				server, client := a.Server(), client.Clone()
				other := client
				if !atServer {
					server.GetConfigForClient, other = nil, server
				}
				other.MaxVersion, other.CipherSuites = tls.VersionTLS12, []uint16{suite.ID}
				_, seen, err := handshake(t, server, client)
				if (err == nil) != good || good && seen.CipherSuite != suite.ID {
					t.Errorf("%s, judged by the server (%v): %v", suite.Name, atServer, err)
				}
			}
		}
		if tried < 5 {
			t.Errorf("only %d suites were tried", tried)
		}
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	dir := makeCerts(t, "A", "B")
	text := filepath.Join(dir, "text")
	must(t, os.WriteFile(text, []byte("no PEM"), 0o600))
	good := files(dir, "A")
	for name, tc := range map[string]struct {
		edit func(*tlsconf.Files)
		want string
	}{
		"no certificate there": {func(f *tlsconf.Files) { f.Cert = filepath.Join(dir, "none.crt") }, "none.crt"},
		"no key there":         {func(f *tlsconf.Files) { f.Key = filepath.Join(dir, "none.key") }, "none.key"},
		"no CA there":          {func(f *tlsconf.Files) { f.CA = filepath.Join(dir, "none-ca") }, "none-ca"},
		"damaged certificate":  {func(f *tlsconf.Files) { f.Cert = text }, text},
		"damaged CA":           {func(f *tlsconf.Files) { f.CA = text }, text},
		"another's key":        {func(f *tlsconf.Files) { f.Key = filepath.Join(dir, "B.key") }, "B.key"},
		"certificate alone":    {func(f *tlsconf.Files) { f.Key = "" }, "A.crt"},
		"key alone":            {func(f *tlsconf.Files) { f.Cert = "" }, "certificate"},
		"CA alone":             {func(f *tlsconf.Files) { f.Cert, f.Key = "", "" }, "certificate"},
	} {
		f := good
		tc.edit(&f)
		if _, err := tlsconf.LoadServer(f); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := tlsconf.LoadClient(tlsconf.Files{Key: good.Key}); !errors.Is(err, tlsconf.ErrHalfGiven) {
		t.Errorf("a client's key alone: %v", err)
	}
}

// TestErrorsNameTheCause: damage that editors and openssl do to files.
func TestErrorsNameTheCause(t *testing.T) {
	dir := makeCerts(t, "A")
	for name, change := range map[string]struct{ file, old, text, want string }{
		"mark in the certificate": {"A.crt", "-----BEGIN", "\ufeff-----BEGIN", "A.crt begins with a byte-order mark"},
		"mark in the CA":          {"ca.crt", "-----BEGIN", "\ufeff-----BEGIN", "ca.crt begins with a byte-order mark"},
		"password":                {"A.key", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "A.key has a key with a password"},
		"older password":          {"A.key", "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n\n", "A.key has a key with a password"},
	} {
		path := filepath.Join(dir, change.file)
		good, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, []byte(strings.Replace(string(good), change.old, change.text, 1)), 0o600))
		if _, err := tlsconf.LoadServer(files(dir, "A")); err == nil || !strings.Contains(err.Error(), change.want) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, os.WriteFile(path, good, 0o600))
	}
}

func TestMakeCertsAgain(t *testing.T) {
	dir := makeCerts(t, "A")
	before := read(t, dir)
	if err := tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{"B", "A"}}); !errors.Is(err, tlsconf.ErrExists) {
		t.Errorf("over an existing node: %v", err)
	}
	if diff := cmp.Diff(before, read(t, dir)); diff != "" {
		t.Errorf("a refused call wrote something (-before +after):\n%s", diff)
	}
	must(t, tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{"B"}}))
	server, client := peerConfigs(t, dir, "A", "B", "A")
	if _, _, err := handshake(t, server, client); err != nil {
		t.Errorf("old and new certificate: %v", err)
	}
	must(t, tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{"A"}, Hosts: []string{"db.example.org", "10.1.2.3"}, Overwrite: true}))
	after := read(t, dir)
	for name, kept := range map[string]bool{
		"ca.crt": true, "ca.key": true, "A.crt": false, "A.key": false, "client.crt": false,
	} {
		if (before[name] == after[name]) != kept {
			t.Errorf("%s: kept %t, want %t", name, !kept, kept)
		}
	}
	leaf := load(t, dir, "A").Leaf()
	for _, host := range []string{"db.example.org", "10.1.2.3", "A"} {
		must(t, leaf.VerifyHostname(host))
	}
	must(t, os.Remove(filepath.Join(dir, "ca.key")))
	if err := tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{"C"}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a CA: %v", err)
	}
}

// read returns the contents of all files, and checks the modes of the keys.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	contents := make(map[string]string)
	for _, entry := range entries {
		info, err := entry.Info()
		must(t, err)
		if strings.HasSuffix(entry.Name(), ".key") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		must(t, err)
		contents[entry.Name()] = string(data)
	}
	return contents
}

func TestMakeCertsRefuses(t *testing.T) {
	for name, opts := range map[string]tlsconf.MakeOptions{
		"no node":           {},
		"small letter":      {Nodes: []string{"a"}},
		"too long":          {Nodes: []string{"ABCDE"}},
		"RAFT":              {Nodes: []string{"RAFT"}},
		"a path":            {Nodes: []string{"../A"}},
		"twice":             {Nodes: []string{"A", "A"}},
		"host like a tag":   {Nodes: []string{"A"}, Hosts: []string{"b"}},
		"host with a blank": {Nodes: []string{"A"}, Hosts: []string{"x y"}},
		"empty host":        {Nodes: []string{"A"}, Hosts: []string{""}},
		"wildcard":          {Nodes: []string{"A"}, Hosts: []string{"*.example.org"}},
	} {
		dir := filepath.Join(t.TempDir(), "certs")
		if err := tlsconf.MakeCerts(dir, opts); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: something was written", name)
		}
	}
}
