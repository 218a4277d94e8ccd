package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

// fakeReserves has the numbers from next to high of every tag.
type fakeReserves struct {
	next, high, greatest, discarded int64
	took                            []hilo.Range
	cutOff, tooLong                 bool
}

func (f *fakeReserves) Took(_, _ string, _ *string, r hilo.Range) {
	f.took, f.greatest = append(f.took, r), max(f.greatest, r.High)
}
func (f *fakeReserves) Holds(string, string) (int64, bool) { return f.greatest, f.next <= f.high }
func (f *fakeReserves) Discard(_, _ string, upTo int64)    { f.discarded = upTo }
func (f *fakeReserves) CutOff() (now, tooLong bool)        { return f.cutOff, f.tooLong }

func (f *fakeReserves) Take(_, _ string, size int64) (hilo.Range, bool) {
	if f.next > f.high || f.tooLong {
		return hilo.Range{}, false
	}
	r := hilo.Range{Low: f.next, High: min(f.high, f.next+size-1)}
	f.next = r.High + 1
	return r, true
}

// newReserving returns a node with 1 to 100 in reserve, in a cluster whose counter is there
// too.
func newReserving(t *testing.T, change func(*Config)) (node, *fakeReserves) {
	t.Helper()
	f := &fakeReserves{next: 1, high: 100}
	n := newNode(t, newWorld(t), func(c *Config) {
		c.Reserves = f
		if change != nil {
			change(c)
		}
	})
	if _, err := n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: "users", Size: 100}); err != nil {
		t.Fatal(err)
	}
	return n, f
}

func noQuorum(f *fsmtest.Faults) {
	f.Fail = outcome.NewNotApplied(outcome.NoQuorum, errors.New("no leader"))
}

func TestARangeComesFromTheReserveWhenTheClusterIsOutOfReach(t *testing.T) {
	for what, lose := range map[string]func(*fsmtest.Faults, *fakeReserves){
		"not applied": func(f *fsmtest.Faults, _ *fakeReserves) { noQuorum(f) },
		"unknown": func(f *fsmtest.Faults, _ *fakeReserves) {
			f.Fail = outcome.NewUnknown(outcome.Deadline, errors.New("no answer"))
		},
		"known to be cut off": func(_ *fsmtest.Faults, f *fakeReserves) { f.cutOff = true },
	} {
		t.Run(what, func(t *testing.T) {
			n, f := newReserving(t, nil)
			n.world.Set(func(faults *fsmtest.Faults) { lose(faults, f) })
			before := n.world.Proposals()
			got, err := n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: "Users", Separator: "+", Size: 10, LastMax: 100})
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, &idnodev1.NextRangeResponse{
				Prefix: "Users+", Low: 1, High: 10, Size: 10, NodeTag: "A", RangeAt: got.RangeAt, Token: got.Token, FromReserve: true,
			})
			if len(got.Token) != tokenDigits || f.took[1] != (hilo.Range{Low: 1, High: 10}) {
				t.Errorf("%+v, %v were taken", got, f.took)
			}
			if f.cutOff && n.world.Proposals() != before {
				t.Error("a node that knows that it is cut off asks the cluster")
			}
		})
	}
}

// TestTheClusterIsNotAwaitedForLong: with a reserve, a caller waits for a quarter of its
// time, and half a second at most.
func TestTheClusterIsNotAwaitedForLong(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{
		0: 500 * time.Millisecond, 400 * time.Millisecond: 100 * time.Millisecond,
		time.Minute: 500 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			n, _ := newReserving(t, nil)
			block := make(chan struct{})
			defer close(block)
			n.world.Set(func(f *fsmtest.Faults) { f.Gate = block })
			ctx := t.Context()
			if deadline > 0 {
				bounded, cancel := context.WithTimeout(ctx, deadline)
				defer cancel()
				ctx = bounded
			}
			begin := time.Now()
			got, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "users"})
			if took := time.Since(begin); err != nil || !got.FromReserve || took != want {
				t.Errorf("%+v %v after %v, want %v", got, err, took, want)
			}
		})
	}
}

func TestTheSizeFromTheReserveFollowsThePolicy(t *testing.T) {
	n, f := newReserving(t, nil)
	f.cutOff = true
	got, err := n.NextRange(context.Background(),
		&idnodev1.NextRangeRequest{Tag: "users", LastSize: 32, LastRangeAt: timestamppb.New(time.Now().Add(-time.Second))})
	if err != nil || got.Low != 1 || got.High != 64 {
		t.Fatalf("after a busy range: %+v %v", got, err)
	}
	if got, err = n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: "users", Size: 1000}); err != nil ||
		got.High != 100 || got.Size != 36 {
		t.Fatalf("the rest of the reserve: %+v %v", got, err)
	}
	n.world.Set(noQuorum)
	_, err = n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: "users"})
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
}

// TestARetryGetsTheSameRangeFromTheReserve, at this node, also once the cluster is back.
func TestARetryGetsTheSameRangeFromTheReserve(t *testing.T) {
	n, f := newReserving(t, nil)
	f.cutOff = true
	call := func(principal string, req *idnodev1.NextRangeRequest) (*idnodev1.NextRangeResponse, error) {
		return n.NextRange(as(principal), req)
	}
	req := &idnodev1.NextRangeRequest{Tag: "users", Size: 10, RequestId: &idnodev1.RequestId{Id: "one"}}
	first, err := call("a", req)
	if err != nil {
		t.Fatal(err)
	}
	f.cutOff = false
	req.RequestId = &idnodev1.RequestId{Id: "one", RetrySince: proto.Uint64(0)}
	again, err := call("a", req)
	if err != nil {
		t.Fatal(err)
	}
	same(t, again, first)
	req.Size = 20
	_, err = call("a", req)
	wantError(t, err, apierror.CodeAlreadyExists, apierror.ReasonRequestIDReused, "")
	f.cutOff = true
	if other, err := call("b", req); err != nil || other.Low != first.High+1 {
		t.Errorf("the same id of another caller: %+v %v", other, err)
	}
}

func TestTheReserveRemembersABoundedNumberOfCalls(t *testing.T) {
	n, f := newReserving(t, nil)
	f.high, f.greatest, f.cutOff = maxAnswered+10, maxAnswered+10, true
	for i := range maxAnswered + 5 {
		id := &idnodev1.RequestId{Id: time.Duration(i).String()}
		if _, err := n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: "users", Size: 1, RequestId: id}); err != nil {
			t.Fatal(err)
		}
	}
	if a := &n.ranges.answered; len(a.calls) != maxAnswered || len(a.order) != maxAnswered {
		t.Fatalf("%d calls are remembered", len(a.calls))
	}
}

// TestWhatTheReserveMustNotAnswer: a caller that has seen a number that this node has not, a caller
// that needs low numbers, a caller without the right, and another call.
func TestWhatTheReserveMustNotAnswer(t *testing.T) {
	n, f := newReserving(t, nil)
	n.world.Set(noQuorum)
	for what, req := range map[string]*idnodev1.NextRangeRequest{
		"a higher last max": {Tag: "users", LastMax: 101},
		"a lower max high":  {Tag: "users"},
	} {
		t.Run(what, func(t *testing.T) {
			maxHigh := int64(200)
			if req.LastMax == 0 {
				maxHigh = 99
			}
			_, err := n.NextRangeUpTo(context.Background(), req, maxHigh)
			wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
		})
	}
	_, err := n.NextIdentity(context.Background(), &idnodev1.NextIdentityRequest{Name: "users|"})
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
	f.cutOff, f.tooLong = true, true
	_, err = n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: "users"})
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonReserveTooOld, "")
	if f.next != 1 {
		t.Errorf("the reserve gave the numbers up to %d", f.next-1)
	}
}

// TestALastMaxThatIsNewsDiscardsTheReserve, before the state has the new number: the node may be
// cut off by then.
func TestALastMaxThatIsNewsDiscardsTheReserve(t *testing.T) {
	n, f := newReserving(t, nil)
	if _, err := n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: "users", LastMax: 100}); err != nil || f.discarded != 0 {
		t.Fatalf("discarded up to %d, %v", f.discarded, err)
	}
	if _, err := n.NextRange(context.Background(),
		&idnodev1.NextRangeRequest{Tag: "users", LastMax: 5000}); err != nil || f.discarded != 5000 {
		t.Fatalf("discarded up to %d, %v", f.discarded, err)
	}
}

// TestTheReserveAsksForRights: those that this node has applied last.
func TestTheReserveAsksForRights(t *testing.T) {
	n, f := newReserving(t, nil)
	f.cutOff = true
	n.setRoles(t, everything())
	_, err := n.NextRange(as("stranger"), &idnodev1.NextRangeRequest{Tag: "users"})
	wantError(t, err, apierror.CodePermissionDenied, apierror.ReasonPermissionDenied, "")
	if f.next != 1 {
		t.Errorf("the reserve gave the numbers up to %d", f.next-1)
	}
}
