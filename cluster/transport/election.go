package transport

import (
	"context"

	"github.com/hashicorp/raft"
)

// Leader returns the newest term in which a leader's request was seen, and that leader; 0
// if there was no request. Raft on this node may not have read the request yet.
func (t *Transport) Leader() (term uint64, id raft.ServerID) {
	if l := t.inbound.by.Load(); l != nil {
		return l.term, l.id
	}
	return 0, ""
}

// SendTimeoutNow makes a voter campaign at once, as the last step of a leadership transfer
// does (raft thesis 3.10). It does not need this node's Raft, whose main goroutine may wait
// for the disk. It is safe at any time: the voter is elected only if its log is as
// up-to-date as that of a majority. It returns when the voter has started, or ctx has ended.
func (t *Transport) SendTimeoutNow(ctx context.Context, id raft.ServerID) error {
	self := t.stream.self
	args := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: t.EncodePeer(self, Address(self)),
	}}
	called := make(chan error, 1)
	go func() { called <- t.TimeoutNow(id, Address(id), args, &raft.TimeoutNowResponse{}) }()
	select {
	case err := <-called:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
