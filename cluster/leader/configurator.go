package leader

import (
	"context"
	"math"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/transport"
)

// changeTimeout bounds a change of Raft's configuration.
const changeTimeout = 5 * time.Second

// configurator changes Raft's configuration for the reconcile loop.
type configurator struct {
	// ctx ends with the node.
	ctx       context.Context
	raft      *raft.Raft
	transport *transport.Transport
	transfer  *Transfer
}

var _ raftServers = configurator{}

func (c configurator) Configuration() ([]raft.Server, error) {
	f := c.raft.GetConfiguration()
	return f.Configuration().Servers, f.Error()
}

func (c configurator) AddVoter(id raft.ServerID) error {
	return c.await(func() raft.IndexFuture { return c.raft.AddVoter(id, transport.Address(id), 0, changeTimeout) })
}

func (c configurator) AddNonvoter(id raft.ServerID) error {
	return c.await(func() raft.IndexFuture { return c.raft.AddNonvoter(id, transport.Address(id), 0, changeTimeout) })
}

func (c configurator) RemoveServer(id raft.ServerID) error {
	err := c.await(func() raft.IndexFuture { return c.raft.RemoveServer(id, 0, changeTimeout) })
	if err == nil {
		// The removed node learns of it when it greets again.
		c.transport.Disconnect(id)
	}
	return err
}

func (c configurator) TransferLeadership(ctx context.Context) error {
	return c.transfer.ToAny(ctx)
}

// askRaft requests a change of a configuration that does not exist. Raft refuses that
// without a write; during a transfer it refuses because of the transfer. A barrier cannot
// be used: reads rely on a leader's first barrier being its only one.
func (c configurator) askRaft() error {
	return c.await(func() raft.IndexFuture {
		return c.raft.RemoveServer("", math.MaxUint64, raftguard.StuckTransferProbe)
	})
}

// await bounds a change of the configuration.
func (c configurator) await(start func() raft.IndexFuture) error {
	ctx, cancel := context.WithTimeout(c.ctx, changeTimeout)
	defer cancel()
	return raftguard.Await(ctx, func() raft.Future { return start() })
}
