package node

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/idnode/idnode/server/httpapi"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/tlsconf"
)

// answerTime is what a call over HTTP may take beyond the bound of every call,
// for its answer to be read.
const answerTime = 10 * time.Second

// openHTTP claims the HTTP port, if the node shall have one.
func (n *Node) openHTTP(certificates *tlsconf.Material) (err error) {
	if n.cfg.HTTP == "" {
		return nil
	}
	if n.httpListener, err = n.listenForCallers(n.cfg.HTTP); err != nil {
		return err
	}
	cfg := n.httpConfig(certificates)
	cfg.Around, cfg.Refused, cfg.ExactNumbers = n.tracing.Handler, n.metrics.Refused, n.cfg.RavenDBExactNumbers
	n.http = httpapi.NewServer(cfg, n.service)
	n.openPage()
	return nil
}

func (n *Node) httpConfig(certificates *tlsconf.Material) httpapi.Config {
	cfg := httpapi.Config{
		MaxHeaderBytes: n.cfg.MaxHeaderBytes, HeaderTimeout: n.cfg.HandshakeTimeout,
		WriteTimeout: n.cfg.CallTimeout + answerTime, Logger: n.log,
	}
	cfg.ConnState, cfg.Held = n.countHTTP()
	if certificates != nil {
		cfg.TLS, cfg.Principal, cfg.Accepts = certificates.Server("h2", "http/1.1"), tlsconf.Principal, certificates.Accepts
	}
	return cfg
}

// openMetrics puts metrics and health on their port: their own, where all callers
// see names, or the HTTP port if there is one.
func (n *Node) openMetrics(certificates *tlsconf.Material) (err error) {
	n.metrics.Observe(metrics.Sources{Cluster: n.cluster, State: n.state, Etags: n.counters, NodeID: n.cluster.ID().Bytes(), HeldBytes: n.budget.Held})
	n.metrics.Methods(n.server.GetServiceInfo())
	on, names := n.http, func(r *http.Request) bool { return n.service.MayRead(r.Context()) }
	if n.cfg.Metrics != "" {
		if n.metricsListener, err = n.listenForCallers(n.cfg.Metrics); err != nil {
			return err
		}
		n.metricsPort = httpapi.NewBareServer(n.httpConfig(certificates))
		on, names = n.metricsPort, func(*http.Request) bool { return true }
	}
	if on != nil {
		n.metrics.Handle(on.Handle, names, n.readiness, n.warnings)
	}
	return nil
}

// serve serves on all ports. What it returns gets the error of a port that
// fails.
func (n *Node) serve() <-chan error {
	served := make(chan error, 3)
	go func() { served <- fmt.Errorf("the gRPC port: %w", n.server.Serve(n.listener)) }()
	if n.http != nil {
		go func() { served <- fmt.Errorf("the HTTP port: %w", n.http.Serve(n.httpListener)) }()
	}
	if n.metricsPort != nil {
		go func() { served <- fmt.Errorf("the metrics port: %w", n.metricsPort.Serve(n.metricsListener)) }()
	}
	return served
}

// finishHTTP takes no new connection on the HTTP port. The returned channel is closed
// when the calls in flight there have been answered, or the port was closed.
func (n *Node) finishHTTP() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if n.http != nil {
			_ = n.http.Shutdown(context.Background()) // closeHTTP bounds it.
		}
	}()
	return gone
}

// closeHTTP ends what is left on the HTTP port.
func (n *Node) closeHTTP() {
	if n.http != nil {
		_ = n.http.Close()
	}
	if n.httpListener != nil {
		_ = n.httpListener.Close() // The server has closed it, if it served.
	}
}

// closeMetrics ends the port of metrics and health, if they have one.
func (n *Node) closeMetrics() {
	if n.metricsPort != nil {
		_ = n.metricsPort.Close()
	}
	if n.metricsListener != nil {
		_ = n.metricsListener.Close() // The server has closed it, if it served.
	}
}
