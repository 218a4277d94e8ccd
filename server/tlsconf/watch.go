package tlsconf

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// WatchConfig is what Watch needs.
type WatchConfig struct {
	// Every is between two looks at the files.
	Every time.Duration
	// Check refuses a new certificate for a reason of the caller's; nil refuses none.
	Check func(*x509.Certificate) error
	// OnReload, if not nil, gets nil for each change that is used, else the reason.
	OnReload func(error)
	Logger   *slog.Logger
}

// Watch reads the files again whenever their content has changed, until ctx ends.
// What cannot be used leaves what there is in place, and is said once.
//
// The content is compared, not the time or the name: that notices every way to
// replace a file, also a swap of the folder above it.
func (m *Material) Watch(ctx context.Context, cfg WatchConfig) {
	w := watcher{material: m, cfg: cfg, taken: m.first}
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
	// taken is the content in use, failed the newest that could not be used; said: it was told.
	taken, failed [sha256.Size]byte
	said          bool
}

// look takes a new content over. Certificate and key are two files, so a look may fall between
// them: what cannot be used is told only if the next look finds it unchanged.
func (w *watcher) look() {
	sum, err := w.material.files.sum()
	if err == nil && sum == w.taken {
		w.failed, w.said = [sha256.Size]byte{}, false
		return
	}
	if err == nil {
		err = w.material.reload(sum, w.cfg.Check)
	}
	if err == nil {
		w.taken, w.failed, w.said = sum, [sha256.Size]byte{}, false
		w.tell(nil)
		return
	}
	if again := sum == w.failed; again && !w.said {
		w.said = true
		w.tell(err)
	} else if !again {
		w.failed, w.said = sum, false
	}
}

func (w *watcher) tell(err error) {
	if w.cfg.OnReload != nil {
		w.cfg.OnReload(err)
	}
	if err != nil {
		w.cfg.Logger.Error("the new certificates cannot be used; the old ones stay", "error", err)
		return
	}
	own, ca := w.material.ValidUntil()
	w.cfg.Logger.Info("certificates were read again", "valid_until", own, "ca_valid_until", ca)
}

// errChanging means that a file was replaced while all were being read.
var errChanging = errors.New("tlsconf: the files are being replaced")

// reload takes over what is in the files now, if it can be used, and if it is the content with this
// hash: of files that are being replaced, some would be of the old content.
func (m *Material) reload(want [sha256.Size]byte, check func(*x509.Certificate) error) error {
	l, err := m.files.read()
	if err != nil {
		return err
	}
	if now, err := m.files.sum(); err != nil || now != want {
		return errChanging
	}
	if l.cert != nil {
		if err := usable(l.cert.Leaf, time.Now()); err != nil {
			return fmt.Errorf("tlsconf: certificate %s: %w", m.files.Cert, err)
		}
		if check != nil {
			if err := check(l.cert.Leaf); err != nil {
				return err
			}
		}
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

// sum returns a hash of the content of all files. With an error it is that of
// those that could be read, so that the same failure has the same hash.
func (f Files) sum() (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	for _, name := range []string{f.Cert, f.Key, f.CA} {
		if name == "" {
			continue
		}
		data, failed := os.ReadFile(name)
		if failed != nil {
			err = fmt.Errorf("tlsconf: %w", failed)
		}
		part := sha256.Sum256(data)
		h.Write(part[:])
	}
	return [sha256.Size]byte(h.Sum(nil)), err
}

// ValidUntil returns until when the own certificate is valid, and the first of the
// CA's; zero where there is none.
func (m *Material) ValidUntil() (own, ca time.Time) {
	l := m.now.Load()
	if l.cert != nil {
		own = l.cert.Leaf.NotAfter
	}
	return own, l.caUntil
}
