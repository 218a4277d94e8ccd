// Package metrics is what operators and their machines see of a node: its metrics for Prometheus,
// and over HTTP whether it lives and is ready. It owns the names and labels of all series, and the
// bounds of the labels. Frequent events are counted as they happen; states are read at each scrape.
package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/server/service"
)

const (
	namespace = "idnode"
	// maxScrapes is how many scrapes are answered at a time: more than one
	// Prometheus and a curious person need.
	maxScrapes = 4
	// scrapeTimeout is below the ten seconds that Prometheus waits.
	scrapeTimeout = 8 * time.Second
)

// Metrics are the metrics of one node. Its methods are safe for concurrent use,
// except Observe and Methods, which are called before anything is served.
type Metrics struct {
	registry *prometheus.Registry
	// factory makes metrics and registers them.
	factory   promauto.Factory
	databases *databases
	// refused and connectionsRefused are by reason.
	refused, connectionsRefused *prometheus.CounterVec

	cluster cluster.Events
	// groupTook and logWrite are among what the cluster node tells.
	groupTook, logWrite prometheus.Histogram
	calls               callMetrics
	space               *space
	recent              recent
	backedUp            prometheus.Gauge
	// reloads and reloadsFailed are of the certificate files.
	reloads, reloadsFailed prometheus.Counter
}

// New returns the metrics of a node that runs this version of the program.
func New(version string) *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{registry: registry, factory: promauto.With(registry), space: newSpace()}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.factory.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Which program this is; always 1.",
	}, []string{"version", "revision", "go_version"}).WithLabelValues(version, service.Revision(), runtime.Version()).Set(1)
	m.databases = m.newDatabases()
	m.refused = m.counterVec("call_errors_total", "Calls that ended with an error, by its reason.", "reason")
	m.connectionsRefused = m.counterVec("connections_refused_total", "Connections of callers that were refused, by the reason.", "reason")
	m.cluster = m.clusterEvents()
	m.calls = m.newCallMetrics()
	read := m.counterVec("tls_reloads_total", "Changes of the certificate files, by whether they could be taken over.", "result")
	m.reloads, m.reloadsFailed = read.WithLabelValues("ok"), read.WithLabelValues("failed")
	m.backedUp = m.gauge("backup_last_success_timestamp_seconds",
		"When this node has last written a whole backup, in seconds since 1970; 0 if it has written none since its start.")
	return m
}

// Handler answers a scrape with names.
func (m *Metrics) Handler() http.Handler { return handler(m.registry) }

func handler(of prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(of, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout})
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	return m.factory.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func (m *Metrics) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return m.factory.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	return m.factory.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return m.factory.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
}

// CertificatesRead counts a change of the certificate files; err is the reason why it
// could not be used, or nil.
func (m *Metrics) CertificatesRead(err error) {
	if err != nil {
		m.reloadsFailed.Inc()
		return
	}
	m.reloads.Inc()
}

// Certificates shows when certificates expire. validUntil returns the end of the node's own and of the CA's;
// zero for none, and ended how many CAs have ended. It is called once at most.
func (m *Metrics) Certificates(validUntil func() (own, ca time.Time), ended func() int) {
	m.factory.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "tls_ended_cas", Help: "CAs in the CA file that have ended.",
	}, func() float64 { return float64(ended()) })
	m.expiry("own", func() time.Time { own, _ := validUntil(); return own })
	m.expiry("ca", func() time.Time { _, ca := validUntil(); return ca })
}

func (m *Metrics) expiry(certificate string, until func() time.Time) {
	m.factory.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "tls_certificate_expiry_timestamp_seconds",
		Help:        "When a certificate expires.",
		ConstLabels: prometheus.Labels{"certificate": certificate},
	}, func() float64 { return float64(until().Unix()) })
}

// seconds are the buckets of what a disk or a network takes: 0.1 ms to 3.3 s.
func seconds() []float64 { return prometheus.ExponentialBuckets(0.0001, 2, 16) }

// operations are the buckets of what travels together: 1 to 4096.
func operations() []float64 { return prometheus.ExponentialBuckets(1, 2, 13) }
