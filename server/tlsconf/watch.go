package tlsconf

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"
)

// WatchConfig configures Watch.
type WatchConfig struct {
	// Every is the interval between checks of the files.
	Every time.Duration
	// Check refuses a new certificate for a reason of the caller's.
	Check func(*x509.Certificate) error
	// OnReload gets nil for each change that is used, else the reason.
	OnReload func(error)
	Logger   *slog.Logger
}

// Watch reads the files again whenever their content has changed, until ctx ends.
// A certificate that cannot be used is logged once; the current one stays in use.
//
// The content is compared, not the time or the name: that notices every way to
// replace a file, also a swap of the folder above it.
func (m *Material) Watch(ctx context.Context, cfg WatchConfig) {
	w := watcher{material: m, cfg: cfg}
	tick := time.NewTicker(cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.look()
		}
	}
}

type watcher struct {
	material *Material
	cfg      WatchConfig
	// failed is the newest unusable text, and failures the number of looks that found it.
	failed   text
	failures int
}

// look loads a new text. Certificate and key are two files, so a look may fall between them: an
// unusable text is logged only if the next look finds it unchanged.
func (w *watcher) look() {
	found, err := w.material.files.read()
	if err == nil && found == w.material.now.Load().text {
		w.failures = 0
		return
	}
	if err == nil {
		err = w.material.adopt(found, w.cfg.Check)
	}
	if err == nil {
		w.failures = 0
		w.tell(nil)
		return
	}
	if found != w.failed {
		w.failed, w.failures = found, 0
	}
	if w.failures++; w.failures == 2 {
		w.tell(err)
	}
}

func (w *watcher) tell(err error) {
	w.cfg.OnReload(err)
	if err != nil {
		w.cfg.Logger.Error("the new certificates cannot be used; the old ones stay", "error", err)
		return
	}
	own, ca := w.material.ValidUntil()
	w.cfg.Logger.Info("certificates were read again", "valid_until", own, "ca_valid_until", ca)
	w.material.WarnOfEnded(w.cfg.Logger)
}

// WarnOfEnded logs the CAs that have expired: certificates issued by them are refused.
func (m *Material) WarnOfEnded(log *slog.Logger) {
	for _, ca := range m.ended() {
		log.Warn("a CA in the file has expired: remove it", "file", m.files.CA, "ca", nameOfCA(ca), "ended", ca.NotAfter)
	}
}

// ended are the CAs that have ended.
func (m *Material) ended() (cas []*x509.Certificate) {
	for _, ca := range m.now.Load().roots {
		if time.Now().After(ca.NotAfter) {
			cas = append(cas, ca)
		}
	}
	return cas
}

// EndedCAs is the number of expired CAs in the file.
func (m *Material) EndedCAs() int { return len(m.ended()) }

// signs reports whether a CA in the file has signed the own certificate. Where none has, as where callers and
// nodes have different CAs, other nodes need another file.
func (l *loaded) signs() bool {
	if l.cert == nil || l.ca == nil {
		return false
	}
	between := x509.NewCertPool()
	for _, raw := range l.cert.Certificate[1:] {
		if cert, err := x509.ParseCertificate(raw); err == nil {
			between.AddCert(cert)
		}
	}
	_, err := l.cert.Leaf.Verify(x509.VerifyOptions{Roots: l.ca, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err == nil
}

func (m *Material) adopt(found text, check func(*x509.Certificate) error) error {
	l, err := m.files.parse(found)
	if err != nil {
		return err
	}
	if l.cert != nil {
		if err := usable(l.cert.Leaf, time.Now()); err != nil {
			return fmt.Errorf("tlsconf: certificate %s: %w", m.files.Cert, err)
		}
		if err := check(l.cert.Leaf); err != nil {
			return err
		}
	}
	if m.now.Load().signs() && !l.signs() {
		return fmt.Errorf("tlsconf: no CA in %s has signed the certificate %s, as one had before: other nodes would be refused",
			m.files.CA, m.files.Cert)
	}
	m.now.Store(l)
	return nil
}

// usable refuses a certificate that no peer would accept now.
func usable(cert *x509.Certificate, now time.Time) error {
	if now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return fmt.Errorf("it is valid from %s to %s only", cert.NotBefore.Format(time.RFC3339), cert.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// ValidUntil returns the expiry of the own certificate, and the earliest of the CAs that have not
// expired, or else the latest; zero where there is none.
func (m *Material) ValidUntil() (own, ca time.Time) {
	l := m.now.Load()
	if l.cert != nil {
		own = l.cert.Leaf.NotAfter
	}
	for _, root := range l.roots {
		if end := root.NotAfter; end.After(ca) && time.Now().After(ca) || end.Before(ca) && end.After(time.Now()) {
			ca = end
		}
	}
	return own, ca
}
