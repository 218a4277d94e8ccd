package transport

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftguard"
)

var errTransferOver = errors.New("the leadership transfer is over")

// transfer is a leadership transfer of this node's Raft. The library (v1.7.3) may send the voter
// its TimeoutNow request after it has given the transfer up.
type transfer struct {
	mu         sync.Mutex
	open, told bool
}

// BeginTransfer lets Raft tell a voter to campaign, until EndTransfer.
func (t *Transport) BeginTransfer() { t.transfer.set(true) }

// EndTransfer reports whether Raft has told a voter to campaign since BeginTransfer; the message
// may have been lost. If not, Raft tells no voter until the next BeginTransfer.
func (t *Transport) EndTransfer() (told bool) { return t.transfer.set(false) }

func (t *transfer) set(open bool) (told bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told = t.told
	t.open, t.told = open, false
	return told
}

func (t *transfer) tell() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = t.told || t.open
	return t.open
}

// TimeoutNow implements raft.Transport: the last step of a leadership transfer (raft thesis 3.10).
func (t *Transport) TimeoutNow(id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest,
	resp *raft.TimeoutNowResponse,
) error {
	if !t.transfer.tell() {
		return errTransferOver
	}
	return t.NetworkTransport.TimeoutNow(id, target, args, resp)
}

// SendTimeoutNow makes a voter campaign at once, as the last step of a leadership transfer
// does (raft thesis 3.10). It does not need this node's Raft, whose main goroutine may wait
// for the disk. It is safe at any time: the voter is elected only if its log is as
// up-to-date as that of a majority. It returns when the voter has started, or ctx has ended.
func (t *Transport) SendTimeoutNow(ctx context.Context, id raft.ServerID) error {
	return raftguard.Await(ctx, func() error {
		request := &raft.TimeoutNowRequest{RPCHeader: t.inbound.header}
		return t.NetworkTransport.TimeoutNow(id, Address(id), request, &raft.TimeoutNowResponse{})
	})
}
