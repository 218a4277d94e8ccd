package transport

import (
	"context"
	"net"

	"github.com/hashicorp/raft"
)

// Calls returns the listener of the members' connections for calls. Such a connection has been
// admitted as Raft's are, and ends with the membership; its remote address is the member's
// Raft id. Closing the listener does nothing: it ends with the transport.
func (t *Transport) Calls() net.Listener { return calls{t.stream} }

// DialCalls opens a connection for calls to a member, which has accepted it.
func (t *Transport) DialCalls(ctx context.Context, id raft.ServerID) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultDialTimeout)
	defer cancel()
	defer context.AfterFunc(t.stream.ctx, cancel)()
	return t.stream.dial(ctx, string(id), forCalls, 0)
}

type calls struct{ *stream }

func (c calls) Accept() (net.Conn, error) { return c.next(c.calls) }

func (c calls) Close() error { return nil }

type callsConn struct{ *conn }

func (c callsConn) RemoteAddr() net.Addr { return raftAddr(c.peer) }
