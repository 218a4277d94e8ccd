package node

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/httpapi"
	"github.com/idnode/idnode/server/jsonapi"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/tlsconf"
	"github.com/idnode/idnode/server/webpage"
)

// answerTime is how much longer than the bound of every call an HTTP call may take, so that
// its answer can be read.
const answerTime = 10 * time.Second

// What is held, and in flight, for all probes and scrapes without TLS.
const (
	probesBytes    = 8 << 20
	probesInFlight = 64
)

// port is a port for HTTP calls: a server and its listener. Both are nil on a node without
// that port.
type port struct {
	server   *httpapi.Server
	listener net.Listener
}

func (p *port) address() string {
	if p.listener == nil {
		return ""
	}
	return p.listener.Addr().String()
}

// finish accepts no new connection. The returned channel is closed when the calls in flight
// have been answered, or the port was closed.
func (p *port) finish() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if p.server != nil {
			_ = p.server.Shutdown(context.Background()) // close bounds it.
		}
	}()
	return gone
}

func (p *port) close() {
	if p.server != nil {
		_ = p.server.Close()
	}
	if p.listener != nil {
		_ = p.listener.Close() // Closed already if the server has served.
	}
}

// openHTTP opens the HTTP port, if it is configured, with the public API and the page.
func (n *Node) openHTTP() (err error) {
	if n.cfg.HTTP == "" {
		return nil
	}
	if n.http.listener, err = n.listen(n.cfg.HTTP); err != nil {
		return err
	}
	cfg := n.httpConfig(false)
	cfg.Around, cfg.Refused, cfg.Leader = n.opts.Tracing.Handler, n.metrics.Refused, n.leader
	public := jsonapi.New(n.server, n.service.CheckHost)
	cfg.Answer = public.Answer
	n.http.server = httpapi.NewServer(cfg, n.service)
	public.Handle(n.http.server.Handle)
	n.page = webpage.New(webpage.Config{
		Service: n.service, Public: public, Issued: n.metrics.Issued, Recent: n.metrics.Recent, Busiest: &n.busiest,
	})
	n.page.Handle(n.http.server.Handle)
	return nil
}

// httpConfig is that of all HTTP ports. One that is plain has no TLS, whatever the others have, and then its
// callers are counted apart: the kubelet may have the address of others, and what they waste is not the probes'.
func (n *Node) httpConfig(plain bool) httpapi.Config {
	of := n.callers
	if plain {
		of = newCallers(&config.Config{MaxHeldBytes: probesBytes, MaxInFlight: probesInFlight}, n.metrics, n.log)
	}
	cfg := httpapi.Config{
		WriteTimeout: n.cfg.CallTimeout + answerTime, ClusterID: n.clusterID, Logger: n.log,
		ConnState: of.countHTTP, Held: of.heldHTTP,
	}
	if n.certs != nil && !plain {
		cfg.TLS, cfg.Principal, cfg.Accepts = n.certs.Server("http/1.1"), tlsconf.Principal, n.certs.Accepts
	}
	return cfg
}

// openMetrics serves metrics and health on their own port, where all callers see names if TLS says
// who they are, or else on the HTTP port.
func (n *Node) openMetrics() (err error) {
	n.metrics.Observe(metrics.Sources{
		Cluster: n.cluster, State: n.state, Etags: n.counters, NodeID: n.cluster.ID().Bytes(),
		HeldBytes: n.HeldBytes, Reserve: n.reserve.Total, CallersByCA: func() map[string]int { return n.callers.byCA(n.certs) },
	})
	n.metrics.Methods(n.server.GetServiceInfo(), n.members.ServiceInfo())
	on, names := n.http.server, func(r *http.Request) bool { return n.service.MayRead(r.Context()) }
	if n.cfg.Metrics != "" {
		address, plain := n.cfg.MetricsListener()
		if n.metricsPort.listener, err = n.listen(address); err != nil {
			return err
		}
		n.metricsPort.server = httpapi.NewBareServer(n.httpConfig(plain))
		webpage.HandleManual(n.metricsPort.server.Handle) // Links of alerts lead to the port that is scraped.
		on, names = n.metricsPort.server, func(*http.Request) bool { return !plain }
	}
	if on != nil {
		n.metrics.Handle(on.Handle, names, senderOf, n.service.CheckHost,
			metrics.Health{Alive: n.Alive, Ready: n.readiness.reason, Warnings: n.readiness.warnings})
	}
	return nil
}

// serve serves on all ports, and returns a channel for the error of a port that fails.
func (n *Node) serve() <-chan error {
	served := make(chan error, 3)
	start := func(name string, serve func(net.Listener) error, on net.Listener) {
		go func() { served <- fmt.Errorf("the %s port: %w", name, serve(on)) }()
	}
	start("gRPC", n.server.Serve, n.listener)
	if n.http.server != nil {
		start("HTTP", n.http.server.Serve, n.http.listener)
	}
	if n.metricsPort.server != nil {
		start("metrics", n.metricsPort.server.Serve, n.metricsPort.listener)
	}
	return served
}
