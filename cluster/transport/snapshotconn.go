package transport

import (
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftlogger"
)

// snapshotConns are the connections on which this node sends snapshots. The library (v1.7.3)
// bounds the whole transfer by the snapshot's size: over a link that is slower than expected,
// a snapshot started again and again. Here a transfer may last while it progresses, as the
// receiver reports: the number of bytes sent says little, because buffers on the way may
// hold all of them.
type snapshotConns struct {
	// stall bounds the time without progress.
	stall time.Duration
	mu    sync.Mutex
	open  map[*snapshotConn]struct{}
}

func newSnapshotConns(stall time.Duration) *snapshotConns {
	return &snapshotConns{stall: stall, open: map[*snapshotConn]struct{}{}}
}

// snapshotConn is a connection on which a snapshot is sent to a node.
type snapshotConn struct {
	net.Conn
	to  raft.ServerAddress
	all *snapshotConns
}

// SetDeadline implements net.Conn. The library's deadline is that of the whole transfer.
func (c *snapshotConn) SetDeadline(time.Time) error { return c.moved() }

// moved extends the deadline after progress.
func (c *snapshotConn) moved() error { return c.Conn.SetDeadline(time.Now().Add(c.all.stall)) }

func (c *snapshotConn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// which returns the connections to a node, or all if to is empty.
func (t *snapshotConns) which(to raft.ServerAddress) []*snapshotConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(t.open)), func(c *snapshotConn) bool { return to != "" && c.to != to })
}

// moved records that a receiver has reported progress.
func (t *snapshotConns) moved(to raft.ServerID) {
	for _, c := range t.which(Address(to)) {
		_ = c.moved()
	}
}

// newInstaller returns the sender of snapshots.
func newInstaller(cfg Config, s *stream, all *snapshotConns) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: byID{},
		Logger:                raftlogger.New(cfg.Logger),
		Stream:                dialer{s, all},
		Timeout:               cfg.InstallTimeout,
		MaxRPCsInFlight:       1,
	})
}

// dialer is a stream that only dials, for snapshots.
type dialer struct {
	*stream
	all *snapshotConns
}

// Accept implements net.Listener: it waits for the stream's end.
func (d dialer) Accept() (net.Conn, error) {
	<-d.ctx.Done()
	return nil, net.ErrClosed
}

// Close implements net.Listener. It does not own the stream.
func (d dialer) Close() error { return nil }

func (d dialer) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	conn, err := d.stream.Dial(to, timeout)
	if err != nil {
		return nil, err
	}
	c := &snapshotConn{conn, to, d.all}
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	d.all.open[c] = struct{}{}
	return c, nil
}

// InstallSnapshot implements raft.Transport. A node that needs a snapshot has no unanswered
// entries: it got none, or refused them.
func (t *Transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	t.answers.answered(id)
	t.catchUps.Begun(id, args.LastLogIndex)
	err := t.installer.InstallSnapshot(id, target, args, resp, data)
	if err == nil && resp.Success {
		t.acknowledged(id, resp.Term, 0, args.LastLogIndex)
	} else {
		t.catchUps.Ended(id)
	}
	return err
}

// StopSnapshots ends the snapshots that this node sends, because it no longer leads. The
// library would send them to their end, with heartbeats of the old term, and a node that
// reads a snapshot grants no vote.
func (t *Transport) StopSnapshots() {
	for _, c := range t.snapshots.which("") {
		_ = c.Close()
	}
	t.catchUps.Clear()
}
