package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"

	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/server/calllog"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/peer"
	"github.com/idnode/idnode/server/tlsconf"
)

// callers owns the callers' connections and the budget of what is held for them. It is safe
// for concurrent use.
type callers struct {
	// budget bounds the bytes and connections held for callers.
	budget *budget.Budget
	// grpc are the connections of the gRPC port.
	grpc *peer.Connections
	// http are the accounts of the HTTP ports' connections, by net.Conn.
	http    sync.Map
	metrics *metrics.Metrics
	log     *slog.Logger
	// ofCA is what byCA has found last; nil without TLS.
	ofCA atomic.Pointer[[]*peerv1.CallersOfCA]
	// refused limits the log lines about refused connections.
	refused calllog.Budget
}

// connectionBytes is what a connection counts in MaxHeldBytes: about its buffers.
const connectionBytes = 64 << 10

func newCallers(cfg *config.Config, m *metrics.Metrics, log *slog.Logger) *callers {
	limits := budget.Limits{
		Bytes:       int64(cfg.MaxHeldBytes),
		Connections: cmp.Or(cfg.Tuning.CallerConnections, int(cfg.MaxHeldBytes/connectionBytes)), Calls: cfg.MaxInFlight,
	}
	c := &callers{budget: budget.New(limits), metrics: m, log: log}
	c.grpc = peer.NewConnections(c.countGRPC)
	return c
}

func (c *callers) countGRPC(conn net.Conn, info credentials.AuthInfo) *budget.Connection {
	if info, ok := info.(credentials.TLSInfo); ok {
		return c.count(conn, tlsconf.Principal(info.State))
	}
	return c.count(conn, "")
}

// countHTTP receives the states of the HTTP ports' connections. It counts them from their first
// request on; before that only time bounds them.
func (c *callers) countHTTP(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive:
		if c.heldHTTP(conn) != nil {
			return
		}
		principal := ""
		if secured, ok := conn.(*tls.Conn); ok {
			principal = tlsconf.Principal(secured.ConnectionState())
		}
		if held := c.count(conn, principal); held != nil {
			c.http.Store(conn, held)
		} // Else its first request is refused, and closes it.
	case http.StateClosed, http.StateHijacked:
		if held, ok := c.http.LoadAndDelete(conn); ok {
			held.(*budget.Connection).Close()
		}
	}
}

// heldHTTP returns the account of a connection of an HTTP port; nil if it is not counted.
func (c *callers) heldHTTP(conn net.Conn) *budget.Connection {
	found, _ := c.http.Load(conn)
	held, _ := found.(*budget.Connection)
	return held
}

// byCA returns how many connections of callers are open, by the CA that signed their certificates; 0 for
// a CA without one. It is nil without TLS.
func (c *callers) byCA(certs *certificates) map[string]int {
	if certs == nil {
		return nil
	}
	open := map[string]int{}
	for _, ca := range certs.CAs() {
		open[ca] = 0
	}
	add := func(state tls.ConnectionState) {
		if ca := tlsconf.SignedBy(state); ca != "" {
			open[ca]++
		}
	}
	c.grpc.Each(func(info credentials.AuthInfo) {
		if known, ok := info.(credentials.TLSInfo); ok {
			add(known.State)
		}
	})
	c.http.Range(func(conn, _ any) bool {
		if secured, ok := conn.(*tls.Conn); ok {
			add(secured.ConnectionState())
		}
		return true
	})
	return open
}

// callersOf is what byCA returns, in order, for other members. A file of more CAs is that of the whole web.
func callersOf(open map[string]int) (all []*peerv1.CallersOfCA) {
	cas := slices.Sorted(maps.Keys(open))
	for _, ca := range cas[:min(len(cas), tlsconf.MaxCAs)] {
		all = append(all, &peerv1.CallersOfCA{Ca: ca, Connections: uint32(open[ca])})
	}
	return all
}

// figures are those of the metrics, and the callers of the last second.
func (n *Node) figures() *peerv1.Figures {
	f := n.metrics.Recent()
	if callers := n.callers.ofCA.Load(); callers != nil {
		f.Callers = *callers
	}
	return f
}

// count counts a connection for its caller; nil means that the caller has too many.
func (c *callers) count(conn net.Conn, principal string) *budget.Connection {
	caller := nameOf(principal, conn.RemoteAddr().String())
	held := c.budget.Open(caller)
	if held == nil {
		c.refuse("caller", "a connection was refused: "+budget.ErrTooMany.Error(), "caller", caller)
	}
	return held
}

// nameOf returns the name of a caller: its principal, or else the host of its address.
func nameOf(principal, address string) string {
	if principal != "" {
		return principal
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

func senderOf(r *http.Request) string {
	caller, _ := admission.CallerOf(r.Context()) // The server gives each request a caller.
	return nameOf(caller.Principal, caller.Address)
}

// callersListener accepts no connection while descriptors are short: the rest is for Raft,
// whose port has another listener, and for files.
type callersListener struct {
	net.Listener
	callers *callers
}

func (l callersListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			l.callers.refuse("accept", "a connection could not be accepted", "error", err)
			return nil, err
		case !usesReservedDescriptor(conn):
			return conn, nil
		}
		l.callers.refuse("descriptors", "a connection was refused: the process has too few file descriptors left", "address", conn.RemoteAddr())
		_ = conn.Close()
	}
}

func (c *callers) refuse(reason, why, key string, value any) {
	c.metrics.ConnectionRefused(reason)
	if silent, ok := c.refused.Allow(time.Now()); ok {
		c.log.Warn(why, key, value, "lines_left_out", silent)
	}
}

// keepConnections closes the gRPC connections of callers that read none of their pending answers, and
// of those whose certificate has expired, or whose CA was removed, once their calls were refused for two ticks.
func (c *callers) keepConnections(ctx context.Context, certs *certificates) {
	tick := time.NewTicker(certificatesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			c.grpc.EndStalled(now)
			c.ofCA.Store(new(callersOf(c.byCA(certs))))
			c.grpc.Keep(func(info credentials.AuthInfo) bool {
				known, ok := info.(credentials.TLSInfo)
				return !ok || certs.Accepts(known.State)
			})
		}
	}
}
