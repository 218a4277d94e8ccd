package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/client/idnodev1"
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
			send := func(*api, context.Context, *idnodev1.NextIdentityRequest, ...grpc.CallOption) (*idnodev1.NextIdentityResponse, error) {
				t.Errorf("%s: sent", name)
				return nil, nil
			}
			// The node has no connection: what would use it panics.
			_, err := attempt(ctx, r, &node{}, send, &idnodev1.NextIdentityRequest{})
			if !errors.Is(err, ctx.Err()) || errorOf(err).effect() != effectNone {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestReplyAtTheDeadline: a reply that has arrived belongs to the caller, even if its time has
// just ended.
func TestReplyAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flow{wake: make(chan struct{}, 1), waiting: make(map[uint64]*waiting)}
		n := &node{flow: f}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := n.exchange(ctx, &idnodev1.Call{})
			ended <- err
		}()
		synctest.Wait()
		f.pop()
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
