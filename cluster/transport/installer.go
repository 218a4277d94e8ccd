package transport

import (
	"io"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// installer is the stream of snapshots: it only dials.
type installer struct{ *stream }

// Accept implements net.Listener: it waits for the stream's end.
func (i installer) Accept() (net.Conn, error) {
	<-i.ctx.Done()
	return nil, net.ErrClosed
}

// Close implements net.Listener. It does not own the stream.
func (i installer) Close() error { return nil }

func (i installer) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return i.open(to, timeout, i.cfg.InstallTimeout)
}

// InstallSnapshot implements raft.Transport. A node that needs a snapshot has no unanswered
// entries: it got none, or refused them.
func (t *Transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	t.answers.clear(id)
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
	t.stream.conns.closeIf(func(c *conn) bool { return c.stall > 0 })
	t.catchUps.Clear()
}
