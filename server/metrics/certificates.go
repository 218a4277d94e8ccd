package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// certificateMetrics are about the certificates of a node with TLS.
type certificateMetrics struct {
	reloads, failures prometheus.Counter
}

func (m *Metrics) newCertificateMetrics() certificateMetrics {
	v := m.counterVec("tls_reloads_total", "Changes of the certificate files, by whether they could be taken over.", "result")
	return certificateMetrics{reloads: v.WithLabelValues("ok"), failures: v.WithLabelValues("failed")}
}

// CertificatesRead counts a change of the certificate files; err is the reason why it
// could not be used, or nil.
func (m *Metrics) CertificatesRead(err error) {
	if err != nil {
		m.certificates.failures.Inc()
		return
	}
	m.certificates.reloads.Inc()
}

// Certificates shows for how many days certificates are still valid. validUntil
// returns the end of the node's own and of the CA's; zero for none. It is called
// once at most.
func (m *Metrics) Certificates(validUntil func() (own, ca time.Time)) {
	m.daysLeft("own", func() time.Time { own, _ := validUntil(); return own })
	m.daysLeft("ca", func() time.Time { _, ca := validUntil(); return ca })
}

func (m *Metrics) daysLeft(certificate string, until func() time.Time) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "tls_certificate_days_left",
		Help:        "For how many days a certificate is still valid; below zero once it is not.",
		ConstLabels: prometheus.Labels{"certificate": certificate},
	}, func() float64 { return time.Until(until()).Hours() / 24 }))
}
