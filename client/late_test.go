package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// lateTimer is a context whose deadline has passed and whose timer is late.
type lateTimer struct {
	context.Context
	done chan struct{}
}

func (c lateTimer) Deadline() (time.Time, bool) { return time.Now().Add(-1), true }
func (c lateTimer) Done() <-chan struct{}       { return c.done }
func (c lateTimer) Err() error {
	if closed(c.done) {
		return context.DeadlineExceeded
	}
	return nil
}

// TestNothingIsSentAfterTheDeadline: a call that has no time left ends as one of
// which nothing was sent, and with the deadline's error. The node would refuse it
// for its timeout.
func TestNothingIsSentAfterTheDeadline(t *testing.T) {
	ended, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	late := lateTimer{t.Context(), make(chan struct{})}
	time.AfterFunc(time.Millisecond, func() { close(late.done) })
	for name, ctx := range map[string]context.Context{"late": late, "cancelled": ended} {
		for _, unshared := range []bool{false, true} {
			r := &router{cfg: Config{TryTimeout: time.Second, Unshared: unshared}}
			send := func(idnodev1.IdsServiceClient, context.Context, *idnodev1.NextIdentityRequest, ...grpc.CallOption) (*idnodev1.NextIdentityResponse, error) {
				t.Errorf("%s: sent", name)
				return nil, nil
			}
			// The node has no lane: what would use it panics.
			_, err := attempt(ctx, r, &node{}, send, &idnodev1.NextIdentityRequest{})
			if !errors.Is(err, ctx.Err()) || errorOf(err).effect() != effectNone {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestReplyAtTheDeadline: one that has come is the caller's, also if its time ended
// a moment before.
func TestReplyAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flow{wake: make(chan struct{}, 1), waiting: make(map[uint64]*waiting)}
		l := &lane{flow: f}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := l.exchange(ctx, &idnodev1.Call{})
			ended <- err
		}()
		synctest.Wait()
		f.take()
		f.mu.Lock() // The caller needs it to leave.
		cancel()
		w := f.waiting[1]
		w.reply = &idnodev1.Reply{Correlation: 1}
		close(w.done)
		f.mu.Unlock()
		if err := <-ended; err != nil {
			t.Errorf("the reply was dropped: %v", err)
		}
	})
}

// newTestShares returns shares without a client. Two calls for the key are in flight.
func newTestShares(t *testing.T, key shareKey) *shares {
	t.Helper()
	s := &shares{newest: func(string) uint64 { return 1 }, limit: 10 * time.Second, life: t.Context(), open: map[shareKey]*share{}}
	for range sharesInFlight {
		if s.enter(key) != nil {
			t.Fatal("another ticket is there")
		}
	}
	return s
}

// TestSharedValueAtTheDeadline: one that has come is the caller's, also if its time
// ended a moment before.
func TestSharedValueAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := shareKey{name: "orders"}
		s := newTestShares(t, key)
		ctx, cancel := context.WithCancel(t.Context())
		ended, value := make(chan error), int64(0)
		go func() {
			v, err := s.next(ctx, key, nil)
			value = v
			ended <- err
		}()
		synctest.Wait()
		s.mu.Lock() // The caller needs it to leave.
		cancel()
		s.board(key, s.open[key]).hand([]Values{{First: 7, Last: 7}})
		s.mu.Unlock()
		if err := <-ended; err != nil || value != 7 {
			t.Errorf("the value was dropped: %d, %v", value, err)
		}
	})
}

// TestCloseAndTheDeadline: of more callers than share one call, each ends as the
// client is closed, also one whose time ends at the same moment.
func TestCloseAndTheDeadline(t *testing.T) {
	key := shareKey{name: "orders"}
	s := newTestShares(t, key)
	s.start = func(func()) error { return closedError() }
	tickets := make([]*ticket, maxShare+1)
	for i := range tickets {
		tickets[i] = s.enter(key)
	}
	for range sharesInFlight {
		s.leave(key)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, ticket := range tickets {
		if err := s.abandon(ctx, key, ticket); err != nil || !errors.Is(ticket.err, ErrClosed) {
			t.Fatalf("caller %d: %v, %v", i, err, ticket.err)
		}
	}
	if len(s.open) != 0 {
		t.Error("something is left")
	}
}
