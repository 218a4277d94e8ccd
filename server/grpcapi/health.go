package grpcapi

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/client/idnodev1"
)

// LiveService is the name under which the health service says that the process lives, with or
// without a quorum: a supervisor must not restart a node that is merely cut off.
const LiveService = "idnode.live"

// Health is the health service. The names "" and "idnode.v1.IdsService" serve while the node is
// ready, LiveService while the process lives and does not hang. It is safe for concurrent use.
type Health struct {
	*health.Server
	alive func() error

	mu sync.Mutex
	// stopped says that the node no longer becomes ready.
	stopped bool
}

// NewHealth returns a health service that is not ready. alive returns why the node hangs, or nil, or
// does not return.
func NewHealth(alive func() error) *Health {
	h := &Health{Server: health.NewServer(), alive: alive}
	h.SetServingStatus(LiveService, healthv1.HealthCheckResponse_SERVING)
	h.set(healthv1.HealthCheckResponse_NOT_SERVING)
	return h
}

// Check asks whether the node lives when a caller does.
func (h *Health) Check(ctx context.Context, req *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	if req.GetService() == LiveService && h.alive() != nil {
		return &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_NOT_SERVING}, nil
	}
	return h.Server.Check(ctx, req)
}

// SetReady says whether the node is ready. After Stop it changes nothing.
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

// Stop makes the node permanently not ready: the first step of a shutdown. Watchers are
// notified; the process still counts as alive.
func (h *Health) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	h.set(healthv1.HealthCheckResponse_NOT_SERVING)
}

func (h *Health) set(status healthv1.HealthCheckResponse_ServingStatus) {
	h.SetServingStatus("", status)
	h.SetServingStatus(idnodev1.IdsService_ServiceDesc.ServiceName, status)
}

// Readiness tells whether a node is ready.
type Readiness interface {
	Ready() bool
	// QuorumChanges returns a channel that holds a value, or is closed, after
	// Ready may have changed because of the quorum.
	QuorumChanges() <-chan struct{}
}

// readyEvery is how often Follow looks for what has no channel.
const readyEvery = 100 * time.Millisecond

// Follow keeps the health service up to date until ctx ends. It blocks.
func (h *Health) Follow(ctx context.Context, r Readiness) {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		// The channel is fetched before the state is read, so that no change falls in between.
		changed := r.QuorumChanges()
		h.SetReady(r.Ready())
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
		}
	}
}
