package tlsconf_test

import (
	"crypto/rsa"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	pkcs12 "software.sslmate.com/src/go-pkcs12"

	"github.com/idnode/idnode/server/tlsconf"
)

// TestRSAKeys: a key is in the form that programs read that look for its first line, and
// of a kind that they know; those that are there stay.
func TestRSAKeys(t *testing.T) {
	dir := makeCerts(t, "A")
	must(t, tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{"B"}, Clients: []string{"webshop"}, RSA: true}))
	for name, want := range map[string]string{
		"A": "PRIVATE KEY", "ca": "PRIVATE KEY", "client": "PRIVATE KEY", "B": "RSA PRIVATE KEY", "webshop": "RSA PRIVATE KEY",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name+".key"))
		must(t, err)
		if block, _ := pem.Decode(text); block == nil || block.Type != want {
			t.Errorf("%s: %.40q", name, text)
		}
	}
	if _, _, err := handshake(t, load(t, dir, "B").Server(), load(t, dir, "webshop").Client("localhost")); err != nil {
		t.Error(err)
	}
}

// TestPFX: each file holds the certificate, its key and the CA, for its owner alone. An existing
// client gets a file with its own certificate, once.
func TestPFX(t *testing.T) {
	dir := makeCerts(t, "A")
	must(t, tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{"B"}, Clients: []string{"webshop"}, RSA: true, PFX: true}))
	for _, name := range []string{"B", "client", "webshop"} {
		path := filepath.Join(dir, name+".pfx")
		content, err := os.ReadFile(path)
		must(t, err)
		key, leaf, cas, err := pkcs12.DecodeChain(content, "")
		must(t, err)
		own := load(t, dir, name)
		if _, isRSA := key.(*rsa.PrivateKey); isRSA != (name != "client") || !leaf.Equal(own.Leaf()) || len(cas) != 1 ||
			leaf.CheckSignatureFrom(cas[0]) != nil {
			t.Errorf("%s: %T, %v, %d CAs", name, key, leaf.Subject, len(cas))
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
		wantOpenSSLReads(t, path)
	}
	before, err := os.ReadFile(filepath.Join(dir, "client.pfx"))
	must(t, err)
	must(t, tlsconf.MakeCerts(dir, tlsconf.MakeOptions{Nodes: []string{"C"}, PFX: true}))
	if now, err := os.ReadFile(filepath.Join(dir, "client.pfx")); err != nil || string(now) != string(before) {
		t.Errorf("it was written again: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "A.pfx")); err == nil {
		t.Error("a node that was not named got one")
	}
}

// wantOpenSSLReads reads a PFX as other programs do, where there is one.
func wantOpenSSLReads(t *testing.T, path string) {
	t.Helper()
	program, err := exec.LookPath("openssl")
	if err != nil {
		t.Log("openssl is not here")
		return
	}
	out, err := exec.CommandContext(t.Context(), program, "pkcs12", "-in", path, "-passin", "pass:", "-nodes").CombinedOutput()
	if err != nil || strings.Count(string(out), "BEGIN CERTIFICATE") != 2 || strings.Count(string(out), "PRIVATE KEY-----") != 2 {
		t.Errorf("openssl: %v\n%s", err, out)
	}
}
