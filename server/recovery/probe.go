package recovery

import (
	"context"
	"net"
	"sync"
	"time"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// ProbeLimit bounds the look at one member.
const ProbeLimit = 3 * time.Second

// Probe is what was found at a member's address.
type Probe struct {
	Member *raftlogv1.Member
	// Status is its answer; nil if there was none.
	Status *idnodev1.GetStatusResponse
	// open says that something takes connections there; err is why it is no answer.
	open bool
	err  error
}

// GetStatus asks a node at an address for its status.
type GetStatus func(ctx context.Context, address string) (*idnodev1.GetStatusResponse, error)

// Probe looks at all members but this one, at the same time. The error is that ctx ended.
func (r *Recovery) Probe(ctx context.Context, get GetStatus) ([]Probe, error) {
	var found []Probe
	for _, m := range r.Record.Members {
		if !m.GetRemoved() && m.GetTag() != r.Record.Tag {
			found = append(found, Probe{Member: m})
		}
	}
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() {
			p := &found[i]
			p.Status, p.err = get(ctx, p.Member.GetGrpcAddress())
			p.open = p.err == nil || listens(ctx, p.Member)
		})
	}
	all.Wait()
	return found, ctx.Err()
}

// listens says whether something takes connections at a member's addresses.
func listens(ctx context.Context, m *raftlogv1.Member) bool {
	dialer := net.Dialer{Timeout: ProbeLimit}
	for _, address := range []string{m.GetGrpcAddress(), m.GetRaftAddress()} {
		if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			_ = conn.Close() // Nothing was said.
			return true
		}
	}
	return false
}

// is says whether the member itself answered, of the cluster that is to be
// recovered.
func (p Probe) is(clusterID string) bool {
	return p.Status != nil && p.Status.GetSelf().GetTag() == p.Member.GetTag() && p.Status.GetClusterId() == clusterID
}
