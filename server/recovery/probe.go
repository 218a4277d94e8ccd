package recovery

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/cluster/member"
)

// ProbeLimit bounds the look at one member.
const ProbeLimit = 3 * time.Second

// Probe is what was found at an address of a member.
type Probe struct {
	// Tag is the member that is looked for; empty at an address to join through.
	Tag, Address string
	// Status is the answer; nil if there was none.
	Status *idnodev1.GetStatusResponse
	// open says that something takes connections there; err is why it is no answer.
	open bool
	err  error
}

// GetStatus asks a node at an address for its status.
type GetStatus func(ctx context.Context, address string) (*idnodev1.GetStatusResponse, error)

// Probe looks for all members but this one, where they are registered and where the
// configuration lists them, at the same time. The error is that ctx ended.
func (r *Recovery) Probe(ctx context.Context, get GetStatus) ([]Probe, error) {
	found := make([]Probe, 0, len(r.Record.Members))
	var all sync.WaitGroup
	for _, at := range r.places() {
		found = append(found, Probe{Tag: at.Tag, Address: at.Address})
	}
	for i := range found {
		all.Go(func() {
			p := &found[i]
			p.Status, p.err = get(ctx, p.Address)
			p.open = p.err == nil || listens(ctx, append(r.raftPorts(p), p.Address))
		})
	}
	all.Wait()
	return found, ctx.Err()
}

// places are where the other members are looked for.
func (r *Recovery) places() []member.Listed {
	registered := map[string]string{}
	for _, m := range r.Record.Members {
		if !m.GetRemoved() && m.GetTag() != r.Record.Tag {
			registered[m.GetTag()] = m.GetGrpcAddress()
		}
	}
	places := member.ListOf(registered, nil)
	for _, l := range member.ListOf(r.Peer, r.Join) {
		if registered[l.Tag] != "" && registered[l.Tag] != l.Address || l.Tag == "" {
			places = append(places, l)
		}
	}
	return places
}

// raftPorts returns the Raft port that is registered together with a gRPC address.
func (r *Recovery) raftPorts(p *Probe) (addresses []string) {
	for _, m := range r.Record.Members {
		if m.GetTag() == p.Tag && m.GetGrpcAddress() == p.Address {
			addresses = append(addresses, m.GetRaftAddress())
		}
	}
	return addresses
}

// listens says whether something takes connections at one of the addresses.
func listens(ctx context.Context, addresses []string) bool {
	dialer := net.Dialer{Timeout: ProbeLimit}
	for _, address := range addresses {
		if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			_ = conn.Close() // Nothing was said.
			return true
		}
	}
	return false
}
