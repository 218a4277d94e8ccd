package grpcapi

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
)

// changesOfMembers shows the contexts of what changes the membership.
type changesOfMembers struct {
	*backend
	seen func(context.Context) admission.Caller
}

func (c changesOfMembers) RemoveMember(ctx context.Context, tag string, force bool, principal *string) (uint64, error) {
	c.seen(ctx)
	return c.backend.RemoveMember(ctx, tag, force, principal)
}

func (c changesOfMembers) SetWatcher(ctx context.Context, tag string, watcher, force bool, principal *string) (uint64, error) {
	c.seen(ctx)
	return c.backend.SetWatcher(ctx, tag, watcher, force, principal)
}

func (c changesOfMembers) Transfer(ctx context.Context, tag string) (string, error) {
	c.seen(ctx)
	return c.backend.Transfer(ctx, tag)
}

// TestEveryCallHasAnEnd: whatever a method does, it does before an end, also for a caller
// that gave none. GetStatus has none: it waits for nothing, and is what operators ask
// when all else hangs. Nor have those that only propose, whose wait the Proposer bounds.
func TestEveryCallHasAnEnd(t *testing.T) {
	b := newBackend(t)
	var ends []time.Time
	endless := 0
	caller := func(ctx context.Context) admission.Caller {
		if end, ok := ctx.Deadline(); ok {
			ends = append(ends, end)
		} else {
			endless++
		}
		return admission.Caller{}
	}
	svc := service.New(service.Config{
		Logger: slog.New(slog.DiscardHandler), CaughtUp: func() bool { return true },
		CallTimeout: service.DefaultCallTimeout, MaxInFlight: service.DefaultMaxInFlight,
		Events: metrics.New("").Service(), ReserveTotal: func() *reserve.Total { return nil },
		OwnReserves: func() []reserve.Left { return nil },
		Proposer:    b, Linearizer: b, State: b.State, Etags: b, Cluster: changesOfMembers{b, caller},
		Tag:    func() (string, bool) { return "A", true },
		Caller: caller,
	})
	limited := &idnodev1.SetRolesRequest{Table: service.Roles{Limits: []rights.Limit{{Principals: []string{"*"}, InFlight: 1}}}.Message()}
	server := NewServer(Config{Logger: slog.New(slog.DiscardHandler), Observer: quiet{}}, nil, svc, NewHealth(func() error { return nil }))
	defer server.Stop()
	// These may take longer, as a leader that is removed first transfers leadership.
	changes := map[string]proto.Message{
		idnodev1.ClusterService_RemoveMember_FullMethodName:       &idnodev1.RemoveMemberRequest{Tag: "B"},
		idnodev1.ClusterService_SetWatcher_FullMethodName:         &idnodev1.SetWatcherRequest{Tag: "B", Watcher: proto.Bool(false)},
		idnodev1.ClusterService_TransferLeadership_FullMethodName: &idnodev1.TransferLeadershipRequest{Tag: "B"},
	}
	proposals := []string{
		idnodev1.IdsService_NextIdentity_FullMethodName, idnodev1.IdsService_Generate_FullMethodName,
		idnodev1.IdsService_NextRange_FullMethodName, idnodev1.IdsService_ReturnRange_FullMethodName,
		idnodev1.IdsService_Claim_FullMethodName, idnodev1.IdsService_Release_FullMethodName,
	}
	for method := range server.unary {
		if _, err := svc.SetRoles(t.Context(), limited); err != nil {
			t.Fatal(err) // With limits, each call asks for its caller.
		}
		ends, endless = nil, 0
		within, start := service.DefaultCallTimeout, time.Now()
		decode := func(request any) error {
			if change := changes[method]; change != nil {
				proto.Merge(request.(proto.Message), change)
				within = 20 * time.Second
			}
			return nil
		}
		_, _ = server.Unary(t.Context(), method, nil, decode, func(proto.Message) ([]byte, error) { return nil, nil })
		switch {
		case method == idnodev1.ClusterService_GetStatus_FullMethodName, slices.Contains(proposals, method):
		case endless > 0 || len(ends) == 0:
			t.Errorf("%s: %d ends, and %d without", method[strings.LastIndexByte(method, '/')+1:], len(ends), endless)
		case ends[0].After(start.Add(within + time.Minute)):
			t.Errorf("%s ends after %s", method, ends[0].Sub(start))
		}
	}
	if len(server.unary) < 30 {
		t.Errorf("%d methods", len(server.unary))
	}
}
