package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	idnode "github.com/idnode/idnode/client"
	"github.com/idnode/idnode/test/history"
)

// repeaters are the callers that share a Go client, and so take values of an identity together.
const repeaters = 6

// repeat has callers of the Go client take values of one identity, each of which repeats a
// call with what its error names until it knows: no value is another's too, and none is left
// over. They end once the faults do.
func (w *world) repeat(number int) {
	random := w.plan.stream(700)
	endpoints := make([]string, 0, w.plan.nodes)
	for _, s := range w.founders() {
		endpoints = append(endpoints, s.grpcAddress())
	}
	c, err := idnode.New(w.ctx, idnode.Config{
		Endpoints: endpoints, Dial: w.network.port(clientHost(number)).DialContext,
		Timeout: pick(random, 100*time.Millisecond, 400*time.Millisecond, 3*time.Second), Label: "repeats",
	})
	if err != nil {
		panic(err) // The configuration is at fault.
	}
	var callers sync.WaitGroup
	for i := range repeaters {
		r := &repeater{world: w, number: number*100 + i, identity: c.Identity("shared"), random: w.plan.stream(701 + uint64(i))}
		callers.Go(r.run)
	}
	callers.Wait()
	_ = c.Close(w.ctx) // There is nothing to give back.
}

// repeater is one of the callers.
type repeater struct {
	world    *world
	number   int
	identity idnode.Identity
	random   *rand.Rand
	calls    int
}

func (r *repeater) run() {
	for !r.world.healing.Load() {
		r.untilKnown()
		sleep(r.world.ctx, time.Duration(r.random.Int64N(int64(r.world.plan.pause))))
	}
}

// untilKnown takes one value. Each try is recorded as one of the same call.
func (r *repeater) untilKnown() {
	r.calls++
	call := history.Op{Kind: history.Next, Client: int64(r.number), Name: "shared", Count: 1, Request: fmt.Sprintf("%d-%d", r.number, r.calls)}
	var again []idnode.Option
	var deadline time.Time
	for r.world.ctx.Err() == nil {
		switch {
		case !r.world.healing.Load():
		case deadline.IsZero():
			deadline = time.Now().Add(identityLimit)
		case time.Now().After(deadline):
			r.world.found("a call was repeated for %v after the faults, and its caller does not know yet", identityLimit)
			return
		}
		op := call
		op.Call = r.world.history.now()
		value, err := r.identity.Next(r.world.ctx, again...)
		var e *idnode.Error
		switch {
		case err == nil:
			op.Outcome, op.Blocks = history.OK, []history.Block{{First: value, Last: value}}
		case errors.As(err, &e) && !e.OutcomeUnknown:
			op.Outcome, op.Code = history.Failed, e.Reason
			if e.Reason == "DEADLINE_EXCEEDED" {
				op.Code = "NOT_SENT" // In a history the other code is gRPC's, which tells nothing.
			}
		case e != nil && e.RequestID.ID != "":
			op.Outcome, op.Code = history.Unknown, e.Reason
			again = []idnode.Option{idnode.WithRetryOf(e.RequestID)}
		default:
			r.world.found("a call ended with an error that names no request id: %v", err)
			return
		}
		r.world.history.add(op)
		switch {
		case errors.Is(err, idnode.ErrRequestIDReused):
			r.world.found("a call was repeated with its error's id, %s, and refused: %v", e.RequestID.ID, err)
			return
		case err == nil, again == nil, errors.Is(err, idnode.ErrRequestIDExpired):
			return
		}
		sleep(r.world.ctx, time.Duration(r.random.Int64N(int64(300*time.Millisecond))))
	}
}
