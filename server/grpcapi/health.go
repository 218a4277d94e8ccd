package grpcapi

import (
	"context"
	"sync"

	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// LiveService is the name under which the health service says that the process
// lives, with or without a quorum: a supervisor that restarts unhealthy processes
// must not restart a node that is merely cut off.
const LiveService = "idnode.live"

// Health is the health service. The names "" and "idnode.v1.IdsService" serve
// while the node is in touch with a quorum, LiveService while the process lives.
// It is safe for concurrent use.
type Health struct {
	server *health.Server

	mu sync.Mutex
	// stopped says that the node no longer becomes ready.
	stopped bool
}

// NewHealth returns a health service that says the process lives, and is not
// ready.
func NewHealth() *Health {
	h := &Health{server: health.NewServer()}
	h.server.SetServingStatus(LiveService, healthv1.HealthCheckResponse_SERVING)
	h.set(healthv1.HealthCheckResponse_NOT_SERVING)
	return h
}

// SetReady says whether the node is in touch with a quorum. After Stop it
// changes nothing.
func (h *Health) SetReady(ready bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return
	}
	if ready {
		h.set(healthv1.HealthCheckResponse_SERVING)
	} else {
		h.set(healthv1.HealthCheckResponse_NOT_SERVING)
	}
}

// Stop says that the node is not ready, for good: the first step of a shutdown.
// Watchers are told; the process still counts as alive.
func (h *Health) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	h.set(healthv1.HealthCheckResponse_NOT_SERVING)
}

func (h *Health) set(status healthv1.HealthCheckResponse_ServingStatus) {
	h.server.SetServingStatus("", status)
	h.server.SetServingStatus(idnodev1.IdsService_ServiceDesc.ServiceName, status)
}

// Quorum tells whether a node is in touch with a quorum.
type Quorum interface {
	HasQuorum() bool
	// QuorumChanges returns a channel that holds a value, or is closed, after
	// HasQuorum may have changed.
	QuorumChanges() <-chan struct{}
}

// Follow keeps the health service up to date until ctx ends. It blocks.
func (h *Health) Follow(ctx context.Context, q Quorum) {
	for {
		// The channel is fetched before the state is read, so that no change
		// falls in between.
		changed := q.QuorumChanges()
		h.SetReady(q.HasQuorum())
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
