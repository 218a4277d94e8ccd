package node

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/server/tlsconf"
)

// newBudget returns the bounds of what the node holds for its callers.
func (n *Node) newBudget() *budget.Budget {
	return budget.New(budget.Limits{Bytes: n.cfg.MaxHeldBytes, Connections: n.cfg.MaxCallerConnections})
}

// HeldBytes is what is held for callers.
func (n *Node) HeldBytes() int64 { return n.budget.Held() }

// countGRPC counts a connection of the gRPC port.
func (n *Node) countGRPC(conn net.Conn, info credentials.AuthInfo) *budget.Connection {
	if info, ok := info.(credentials.TLSInfo); ok {
		return n.count(conn, tlsconf.Principal(info.State))
	}
	return n.count(conn, "")
}

// countHTTP counts the connections of the HTTP port from their first request on.
// Before that they are bounded by time. It returns the function that learns of their
// states, and the one that finds them.
func (n *Node) countHTTP() (state func(net.Conn, http.ConnState), held func(net.Conn) *budget.Connection) {
	var counted sync.Map // by net.Conn
	held = func(conn net.Conn) *budget.Connection {
		found, _ := counted.Load(conn)
		held, _ := found.(*budget.Connection)
		return held
	}
	state = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateActive:
			if _, known := counted.Load(conn); known {
				return
			}
			principal := ""
			if secured, ok := conn.(*tls.Conn); ok {
				principal = tlsconf.Principal(secured.ConnectionState())
			}
			if held := n.count(conn, principal); held != nil {
				counted.Store(conn, held)
			} else {
				_ = conn.Close()
			}
		case http.StateClosed, http.StateHijacked:
			if held, ok := counted.LoadAndDelete(conn); ok {
				held.(*budget.Connection).Close()
			}
		}
	}
	return state, held
}

// count counts a connection for a principal, or else for the address it is from; nil
// says that there are too many.
func (n *Node) count(conn net.Conn, principal string) *budget.Connection {
	if principal == "" {
		principal = conn.RemoteAddr().String()
		if host, _, err := net.SplitHostPort(principal); err == nil {
			principal = host
		}
	}
	held := n.budget.Open(principal)
	if held == nil {
		n.refuseConnection("caller", "a connection was refused: the caller has as many as one may have", "caller", principal)
	}
	return held
}

// callersListener takes no connection while descriptors are short: those that are left
// are for Raft, whose port has another listener, and for files.
type callersListener struct {
	net.Listener
	node *Node
}

// Accept implements net.Listener.
func (l callersListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			l.node.refuseConnection("accept", "a connection could not be accepted", "error", err)
			return nil, err
		case !amongTheLast(conn):
			return conn, nil
		}
		l.node.refuseConnection("descriptors", "a connection was refused: the process has too few file descriptors left", "address", conn.RemoteAddr())
		_ = conn.Close()
	}
}

// listenForCallers opens a port for callers.
func (n *Node) listenForCallers(address string) (net.Listener, error) {
	listener, err := n.listen(address)
	if err != nil {
		return nil, err
	}
	return callersListener{listener, n}, nil
}

// refuseConnection tells of a connection that is refused.
func (n *Node) refuseConnection(reason, why, key string, value any) {
	n.metrics.ConnectionRefused(reason)
	if silent, ok := n.refused.Take(time.Now()); ok {
		n.log.Warn(why, key, value, "lines_left_out", silent)
	}
}
