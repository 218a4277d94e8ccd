package tlsconf

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	pkcs12 "software.sslmate.com/src/go-pkcs12"
)

const (
	// caValidFor and leafValidFor are long, because nothing renews these certificates: they are for
	// trying a cluster out and for small installations without a CA of their own.
	caValidFor   = 10 * 365 * 24 * time.Hour
	leafValidFor = 2 * 365 * 24 * time.Hour
	// clockSkew bounds the lag of another machine's clock.
	clockSkew = time.Hour
)

// ErrExists means a file that must not be overwritten is there.
var ErrExists = errors.New("tlsconf: the file exists")

// FirstClient is the client whose certificate is made with the nodes' first.
const FirstClient = "client"

// MakeOptions selects the certificates to make.
type MakeOptions struct {
	// Nodes holds the tags of the nodes; each gets a certificate.
	Nodes []string
	// Hosts holds further host names and IP addresses for every node's certificate.
	Hosts []string
	// Clients holds names of clients that get a certificate, beside the one named client. Each
	// certificate names its client.
	Clients []string
	// Overwrite replaces certificates and keys of nodes and client; the CA is never replaced.
	Overwrite bool
	// RSA makes RSA keys for nodes and clients, in PKCS#1, for programs that read no other.
	RSA bool
	// PFX also writes each certificate with its key and the CA into one file, as
	// PKCS#12 with an empty password; also of clients that have certificates already.
	PFX bool
}

// MakeCerts writes certificates for a cluster into dir, which it makes if need be: ca.crt and
// ca.key, TAG.crt and TAG.key for each node, client.crt and client.key, and NAME.crt and NAME.key
// for each further client. The keys are ECDSA P-256, or RSA of 2,048 bits except the CA's, in files
// that only their owner can read.
//
// A node's certificate has a URI that makes it a node's of any cluster, and names its tag,
// localhost, 127.0.0.1, ::1, idnode- with the tag in small letters, and the further hosts. A CA and
// clients' certificates that are in dir are used again. Existing files of a node are an error that
// wraps ErrExists, unless Overwrite is set; nothing is written then.
func MakeCerts(dir string, opts MakeOptions) error {
	if err := opts.validate(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("tlsconf: %w", err)
	}
	ca, err := openCA(dir)
	if err != nil {
		return err
	}
	for _, tag := range opts.Nodes {
		if err := ca.issueFiles(filepath.Join(dir, tag), nodeTemplate(tag, opts.Hosts), opts); err != nil {
			return err
		}
	}
	clients := opts.Clients
	if len(opts.Nodes) > 0 {
		clients = append([]string{FirstClient}, clients...)
	}
	for _, name := range clients {
		if err := ca.issueFiles(filepath.Join(dir, name), clientTemplate(name), opts); err != nil {
			return err
		}
	}
	return nil
}

// issueFiles issues a certificate as the options say, unless there is a certificate to keep.
func (a *authority) issueFiles(base string, t *x509.Certificate, opts MakeOptions) error {
	stays := !opts.Overwrite && anyExists(base+".crt", base+".key")
	if !stays {
		if _, err := issue(base, t, a, opts.RSA); err != nil {
			return err
		}
	}
	if !opts.PFX || stays && anyExists(base+".pfx") {
		return nil
	}
	files, err := Files{Cert: base + ".crt", Key: base + ".key"}.load()
	if err != nil {
		return err
	}
	// Not pkcs12.Modern: its algorithms change with releases, to some that today's Java and OpenSSL
	// do not read.
	pfx, err := pkcs12.Modern2023.Encode(files.cert.PrivateKey, files.cert.Leaf, []*x509.Certificate{a.cert}, "")
	if err != nil {
		return fmt.Errorf("tlsconf: encode %s.pfx: %w", base, err)
	}
	return writeFile(base+".pfx", pfx, 0o600)
}

func (o MakeOptions) validate(dir string) error {
	if len(o.Nodes) == 0 && len(o.Clients) == 0 {
		return errors.New("tlsconf: neither a node nor a client is named")
	}
	seen := make(map[string]bool)
	for _, tag := range o.Nodes {
		if !isTag(tag) || tag != strings.ToUpper(tag) || tag == "RAFT" {
			return fmt.Errorf("tlsconf: %q is no node tag: one to four letters A to Z, not RAFT", tag)
		}
		if seen[tag] {
			return fmt.Errorf("tlsconf: node %s is named twice", tag)
		}
		seen[tag] = true
		base := filepath.Join(dir, tag)
		for _, path := range []string{base + ".crt", base + ".key"} {
			if _, err := os.Lstat(path); err == nil && !o.Overwrite {
				return fmt.Errorf("%w: %s", ErrExists, path)
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("tlsconf: %w", err)
			}
		}
	}
	for _, name := range o.Clients {
		if err := validateClient(name); err != nil {
			return err
		}
	}
	return validateHosts(o.Hosts)
}

// validateClient refuses names that are no names of files, or could be taken for a node's.
func validateClient(name string) error {
	if isTag(name) || name == "ca" {
		return fmt.Errorf("tlsconf: client %q has the form of a node tag, whose files it would replace, or is the CA", name)
	}
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c)
	}
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, func(c rune) bool { return !plain(c) }) {
		return fmt.Errorf("tlsconf: client %q has other characters than letters, digits, dot, - and _", name)
	}
	return nil
}

// validateHosts refuses names that would make a certificate name another node.
func validateHosts(hosts []string) error {
	for _, host := range hosts {
		if host == "" || strings.ContainsAny(host, " \t\r\n/*") {
			return fmt.Errorf("tlsconf: %q is no host name or IP address", host)
		}
		if isTag(host) {
			return fmt.Errorf("tlsconf: host %q has the form of a node tag, and would make the certificate that node's", host)
		}
	}
	return nil
}

func anyExists(paths ...string) bool {
	for _, path := range paths {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

func nodeTemplate(tag string, hosts []string) *x509.Certificate {
	t := leafTemplate("idnode node "+tag, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	t.DNSNames = []string{tag, "localhost", "idnode-" + strings.ToLower(tag)}
	t.URIs = []*url.URL{NodeURI("*", tag)}
	t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	return t
}

func clientTemplate(name string) *x509.Certificate {
	t := leafTemplate("idnode client", x509.ExtKeyUsageClientAuth)
	t.DNSNames = []string{name}
	return t
}

func leafTemplate(name string, usage ...x509.ExtKeyUsage) *x509.Certificate {
	t := template(name, leafValidFor)
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = usage
	return t
}

func template(name string, validFor time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(validFor),
		BasicConstraintsValid: true,
	}
}

type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func openCA(dir string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if !anyExists(certFile, keyFile) {
		return makeCA(filepath.Join(dir, "ca"))
	}
	files, err := Files{Cert: certFile, Key: keyFile}.load()
	if err != nil {
		return nil, err
	}
	key, ok := files.cert.PrivateKey.(crypto.Signer)
	if !ok || !files.cert.Leaf.IsCA || time.Now().After(files.cert.Leaf.NotAfter) {
		return nil, fmt.Errorf("tlsconf: %s is no CA that can still sign", certFile)
	}
	return &authority{cert: files.cert.Leaf, key: key}, nil
}

func makeCA(base string) (*authority, error) {
	t := template("idnode CA", caValidFor)
	t.IsCA = true
	t.MaxPathLenZero = true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	return issue(base, t, nil, false)
}

func makeKey(ofRSA bool) (crypto.Signer, *pem.Block, error) {
	if ofRSA {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, nil, err
		}
		return key, &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return key, &pem.Block{Type: "PRIVATE KEY", Bytes: der}, err
}

// issue makes a key, has its certificate signed by a, or by itself where a is nil, and
// writes both beside each other, as base.key and base.crt.
func issue(base string, t *x509.Certificate, a *authority, ofRSA bool) (*authority, error) {
	key, block, err := makeKey(ofRSA)
	if err != nil {
		return nil, fmt.Errorf("tlsconf: make a key: %w", err)
	}
	if t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, fmt.Errorf("tlsconf: make a serial number: %w", err)
	}
	if a == nil {
		a = &authority{cert: t, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("tlsconf: sign %s.crt: %w", base, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("tlsconf: read back %s.crt: %w", base, err)
	}
	if err := writeFile(base+".key", pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &authority{cert: leaf, key: key}, writeFile(base+".crt", certificate, 0o644)
}

// writeFile replaces a file atomically, with its own mode even if the old file was readable by
// others.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	draft := path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("tlsconf: %w", err)
	}
	if err := os.WriteFile(draft, content, mode); err != nil {
		return fmt.Errorf("tlsconf: %w", err)
	}
	if err := os.Rename(draft, path); err != nil {
		return fmt.Errorf("tlsconf: %w", err)
	}
	return nil
}
