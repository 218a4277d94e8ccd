package metrics

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

// TestCertificates shows how long they are valid, and whether new ones are used.
func TestCertificates(t *testing.T) {
	m := New("test")
	m.Certificates(func() (own, ca time.Time) { return time.Now().Add(36 * time.Hour), time.Now().Add(-12 * time.Hour) },
		func() int { return 2 })
	m.CertificatesRead(nil)
	m.CertificatesRead(nil)
	m.CertificatesRead(errors.New("no PEM"))
	want(t, m, map[string]string{
		`idnode_tls_reloads_total{result="ok"}`: "2", `idnode_tls_reloads_total{result="failed"}`: "1", `idnode_tls_ended_cas`: "2",
	})
	series := scrape(t, m)
	for name, days := range map[string]float64{"own": 1.5, "ca": -0.5} {
		got, err := strconv.ParseFloat(series[`idnode_tls_certificate_days_left{certificate="`+name+`"}`], 64)
		if err != nil || got > days || got < days-0.01 {
			t.Errorf("%s: %g days, want %g (%v)", name, got, days, err)
		}
	}
}
