package tlsconf_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/idnode/idnode/server/tlsconf"
)

// watch watches m, and returns a channel of its reports.
func watch(t *testing.T, m *tlsconf.Material, check func(*x509.Certificate) error) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	told, done := make(chan error, 100), make(chan struct{})
	go func() {
		defer close(done)
		m.Watch(ctx, tlsconf.WatchConfig{
			Every: time.Millisecond, Check: check, OnReload: func(err error) { told <- err }, Logger: slog.New(slog.DiscardHandler),
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return told
}

func anyLeaf(*x509.Certificate) error { return nil }

// next waits for the next report.
func next(t *testing.T, told <-chan error) error {
	t.Helper()
	select {
	case err := <-told:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was told within 10 s")
		return nil
	}
}

// untilGood waits until something was taken over. Looks that are so close to each
// other may find, and tell, that only one of two files was replaced yet.
func untilGood(t *testing.T, told <-chan error) {
	t.Helper()
	for next(t, told) != nil {
	}
}

func remake(t *testing.T, dir string, nodes ...string) {
	t.Helper()
	must(t, tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: nodes, Overwrite: true}))
}

// TestANewCertificateIsTakenOver, by configurations that were made before.
func TestANewCertificateIsTakenOver(t *testing.T) {
	dir := makeCerts(t, "A")
	m := load(t, dir, "A")
	server, before := m.Server(), m.Leaf().SerialNumber
	told := watch(t, m, anyLeaf)
	remake(t, dir, "A")
	untilGood(t, told)
	if m.Leaf().SerialNumber.Cmp(before) == 0 {
		t.Fatal("the certificate is the old one")
	}
	_, seen, err := handshake(t, server, load(t, dir, "client").Client("A"))
	must(t, err)
	if seen.PeerCertificates[0].SerialNumber.Cmp(m.Leaf().SerialNumber) != 0 {
		t.Error("the listener shows the old certificate")
	}
}

// TestANewCAIsTakenOver: certificates of the new CA are accepted, those of the old CA no longer,
// also by a listener that was there before.
func TestANewCAIsTakenOver(t *testing.T) {
	dir, other := makeCerts(t, "A"), makeCerts(t, "A")
	m := load(t, dir, "A")
	server := m.Server()
	old, fresh := load(t, dir, "client").Client("A"), load(t, other, "client").Client("A")
	old.InsecureSkipVerify = true // It is about the server's judgement.
	told := watch(t, m, anyLeaf)
	for _, name := range []string{"A.crt", "A.key", "ca.crt"} {
		must(t, os.Rename(filepath.Join(other, name), filepath.Join(dir, name)))
	}
	// A look may have fallen between two of the files.
	for want := load(t, dir, "A").Leaf(); !m.Leaf().Equal(want); {
		_ = next(t, told)
	}
	if _, _, err := handshake(t, server, fresh); err != nil {
		t.Errorf("of the new CA: %v", err)
	}
	if _, _, err := handshake(t, server, old); err == nil {
		t.Error("of the old CA: let in")
	}
	own, ca := m.ValidUntil()
	if own.Before(time.Now()) || !ca.After(own) {
		t.Errorf("valid until %s, the CA until %s", own, ca)
	}
}

// TestWhatCannotBeUsedLeavesTheOldInPlace, and is reported once; a valid file after it is loaded.
func TestWhatCannotBeUsedLeavesTheOldInPlace(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"no PEM": func(dir string) error { return os.WriteFile(filepath.Join(dir, "A.crt"), []byte("x"), 0o600) },
		"empty":  func(dir string) error { return os.Truncate(filepath.Join(dir, "A.key"), 0) },
		"gone":   func(dir string) error { return os.Remove(filepath.Join(dir, "A.key")) },
		"another pair's key": func(dir string) error {
			return os.Rename(filepath.Join(dir, "client.key"), filepath.Join(dir, "A.key"))
		},
		"CA that is none": func(dir string) error { return os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("x"), 0o600) },
		"a CA that has not signed the certificate": func(dir string) error {
			other := t.TempDir()
			return errors.Join(tlsconf.MakeCerts(other, tlsconf.MakeOptions{Nodes: []string{"A"}}),
				os.Rename(filepath.Join(other, "ca.crt"), filepath.Join(dir, "ca.crt")))
		},
		"another node's": func(dir string) error {
			return errors.Join(
				os.Rename(filepath.Join(dir, "B.crt"), filepath.Join(dir, "A.crt")),
				os.Rename(filepath.Join(dir, "B.key"), filepath.Join(dir, "A.key")),
			)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := makeCerts(t, "A", "B")
			spare := makeCerts(t, "A")
			m := load(t, dir, "A")
			before := m.Leaf()
			told := watch(t, m, func(leaf *x509.Certificate) error {
				return tlsconf.Nodes{}.Check(leaf, "A")
			})
			must(t, spoil(dir))
			for next(t, told) == nil {
				// Two files were changed, and a look fell between them.
			}
			if m.Leaf() != before {
				t.Error("the old certificate is gone")
			}
			if _, _, err := handshake(t, m.Server(), load(t, spare, "client").Client("A")); err == nil {
				t.Error("a stranger is let in")
			}
			for _, file := range []string{"A.crt", "A.key", "ca.crt"} {
				must(t, os.Rename(filepath.Join(spare, file), filepath.Join(dir, file)))
			}
			untilGood(t, told)
			if m.Leaf().Equal(before) {
				t.Error("the good one was not taken over")
			}
		})
	}
}

// TestASwappedFolderIsNoticed: Kubernetes swaps a link to the folder.
func TestASwappedFolderIsNoticed(t *testing.T) {
	root := t.TempDir()
	for _, version := range []string{"1", "2"} {
		must(t, tlsconf.MakeCerts(filepath.Join(root, version), tlsconf.MakeOptions{Nodes: []string{"A"}}))
	}
	link := filepath.Join(root, "now")
	must(t, os.Symlink("1", link))
	m := load(t, link, "A")
	told := watch(t, m, anyLeaf)
	must(t, os.Symlink("2", link+".new"))
	must(t, os.Rename(link+".new", link))
	untilGood(t, told)
	if want := load(t, filepath.Join(root, "2"), "A").Leaf(); !m.Leaf().Equal(want) {
		t.Error("the new folder was not taken over")
	}
}

// TestAChangeBeforeTheFirstLookIsNotMissed: a node takes a while to start.
func TestAChangeBeforeTheFirstLookIsNotMissed(t *testing.T) {
	dir := makeCerts(t, "A")
	m := load(t, dir, "A")
	remake(t, dir, "A")
	untilGood(t, watch(t, m, anyLeaf))
}

// TestNoSessionOutlivesItsCertificate: nobody comes back without showing it again.
func TestNoSessionOutlivesItsCertificate(t *testing.T) {
	dir := makeCerts(t, "A")
	server := load(t, dir, "A").Server()
	client := load(t, dir, "client").Client("A")
	client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for range 2 {
		_, seen, err := handshake(t, server, client)
		must(t, err)
		if seen.DidResume {
			t.Error("a session was resumed")
		}
	}
}

// TestPrincipal: who a certificate names.
func TestPrincipal(t *testing.T) {
	dir := t.TempDir()
	must(t, tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{"A"}, Clients: []string{"shop.example.org"}}))
	server := load(t, dir, "A").Server()
	for name, want := range map[string]string{"client": "dns:client", "shop.example.org": "dns:shop.example.org", "A": "dns:A"} {
		seen, _, err := handshake(t, server, load(t, dir, name).Client("A"))
		must(t, err)
		if got := tlsconf.Principal(seen); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := tlsconf.Principal(tls.ConnectionState{PeerCertificates: []*x509.Certificate{load(t, dir, "client").Leaf()}}); got != "" {
		t.Errorf("a certificate that nobody verified names %q", got)
	}
}

// TestPrincipalsHaveAKind: a name of one kind is not taken for the same text of
// another.
func TestPrincipalsHaveAKind(t *testing.T) {
	op := withURIs(t, "spiffe://example.org/op")
	op.DNSNames = []string{"op"}
	for want, leaf := range map[string]*x509.Certificate{
		"uri:spiffe://example.org/op": op,
		"dns:spiffe://example.org/op": {DNSNames: []string{"spiffe://example.org/op"}},
		"email:op@example.org":        {EmailAddresses: []string{"op@example.org"}},
		"dns:op@example.org":          {DNSNames: []string{"op@example.org"}},
		"":                            {DNSNames: []string{"\xff"}},
	} {
		if got := tlsconf.Principal(tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestURIsAreComparedByteForByte: a CA may check an application's URI so, or by its beginning; a
// URI that only a parser takes for the same is another principal.
func TestURIsAreComparedByteForByte(t *testing.T) {
	for _, uri := range []string{
		"spiffe://ex.org/op", "SPIFFE://ex.org/op", "spiffe://ex.org/op#", "spiffe://ex.org/op?", "spiffe://EX.org/op", "spiffe://ex.org/%6fp",
		"spiffe://ex.org//op", "spiffe://ex.org:/op", "spiffe://@ex.org/op", "urn:op", "URN:op",
	} {
		for name, uris := range map[string][]string{
			"alone":           {uri},
			"behind a node's": {"idnode://*/node/A", "IDNODE://*/node/B", uri, "spiffe://ex.org/other"},
		} {
			leaf := withURIs(t, uris...)
			if got := tlsconf.Principal(tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}); got != "uri:"+uri {
				t.Errorf("%s, %s: %q", uri, name, got)
			}
		}
	}
}

func BenchmarkPrincipalOfAURI(b *testing.B) {
	state := tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{withURIs(b, "spiffe://ex.org/op")}}}
	for b.Loop() {
		tlsconf.Principal(state)
	}
}

// withURIs returns a certificate whose alternative names are URIs as they are written.
func withURIs(t testing.TB, uris ...string) *x509.Certificate {
	t.Helper()
	var names []asn1.RawValue
	for _, uri := range uris {
		names = append(names, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(uri)})
	}
	value, err := asn1.Marshal(names)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return cert
}

// TestAClientIsNoNode whatever names its certificate has.
func TestAClientIsNoNode(t *testing.T) {
	dir := makeCerts(t, "A")
	nodes := tlsconf.Nodes{}
	if err := nodes.Check(load(t, dir, "client").Leaf(), ""); err == nil {
		t.Error("a client's certificate is a node's")
	}
	if err := nodes.Check(load(t, dir, "A").Leaf(), "A"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"A", "ops", "ca", "", "../x", "a b"} {
		if err := tlsconf.MakeCerts(t.TempDir(), tlsconf.MakeOptions{Nodes: []string{"B"}, Clients: []string{name}}); err == nil {
			t.Errorf("a client called %q", name)
		}
	}
}

// TestAnOpenConnectionsCertificate is accepted until it or its issuer expires, and as long as its
// CA is in use.
func TestAnOpenConnectionsCertificate(t *testing.T) {
	dir, other := makeCerts(t, "A"), makeCerts(t, "A")
	load := func(dir string) (*tlsconf.Material, *x509.Certificate, *x509.Certificate) {
		m, err := tlsconf.LoadServer(files(dir, "A"))
		must(t, err)
		text, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
		must(t, err)
		block, _ := pem.Decode(text)
		ca, err := x509.ParseCertificate(block.Bytes)
		must(t, err)
		return m, m.Leaf(), ca
	}
	m, leaf, ca := load(dir)
	_, otherLeaf, otherCA := load(other)
	ended := func(cert *x509.Certificate) *x509.Certificate {
		c := *cert
		c.NotAfter = time.Now().Add(-time.Second)
		return &c
	}
	for name, tt := range map[string]struct {
		chains [][]*x509.Certificate
		want   bool
	}{
		"good":             {[][]*x509.Certificate{{leaf, ca}}, true},
		"one of two":       {[][]*x509.Certificate{{otherLeaf, otherCA}, {leaf, ca}}, true},
		"ended":            {[][]*x509.Certificate{{ended(leaf), ca}}, false},
		"its signer ended": {[][]*x509.Certificate{{leaf, ended(ca)}}, false},
		"another CA":       {[][]*x509.Certificate{{otherLeaf, otherCA}}, false},
		"none":             {nil, false},
	} {
		if got := m.Accepts(tls.ConnectionState{VerifiedChains: tt.chains}); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAnEndedCA in the file is counted, and does not hide when those end that are in use.
func TestAnEndedCA(t *testing.T) {
	dir, ended := makeCerts(t, "A"), time.Now().Add(-time.Hour)
	_, before := load(t, dir, "A").ValidUntil()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: ended, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	must(t, err)
	file := filepath.Join(dir, "ca.crt")
	good, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(good, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})...), 0o600))
	m := load(t, dir, "A")
	if _, after := m.ValidUntil(); m.EndedCAs() != 1 || !after.Equal(before) {
		t.Errorf("%d have ended, and the others are valid until %s, want %s", m.EndedCAs(), after, before)
	}
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600))
	m = load(t, dir, "A")
	if _, after := m.ValidUntil(); !after.Equal(ended.Truncate(time.Second)) {
		t.Errorf("an ended one alone is valid until %s", after)
	}
}
