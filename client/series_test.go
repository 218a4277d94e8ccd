package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

// The fake cluster's series has one scope; keys have the states that calls gave them.

func (n *fakeNode) numberOf(key, label string) *idnodev1.SeriesNumber {
	number := n.values["series "+key]
	if number == 0 {
		n.values["series"]++
		number = n.values["series"]
		n.values["series "+key] = number
	}
	return &idnodev1.SeriesNumber{
		Key: key, Text: fmt.Sprintf("INV-%06d", number), Scope: []string{"2026"}, Number: number,
		State: idnodev1.NumberState(1 + n.values["state "+key]), Date: "2026-11-23", Label: label, Note: "CAF 7",
		Taken: timestamppb.New(time.Unix(1_700_000_000, 0)),
	}
}

func (n *fakeNode) TakeNumbers(ctx context.Context, r *idnodev1.TakeNumbersRequest) (*idnodev1.TakeNumbersResponse, error) {
	return serve(ctx, n, r, nil, func(index uint64) (*idnodev1.TakeNumbersResponse, error) {
		got := &idnodev1.TakeNumbersResponse{LogIndex: index}
		for _, key := range r.GetKeys() {
			got.Numbers = append(got.Numbers, n.numberOf(key, r.GetLabel()))
		}
		return got, nil
	})
}

func (n *fakeNode) end(keys []*idnodev1.NumberOf, state int64) (numbers []*idnodev1.SeriesNumber, _ error) {
	for _, k := range keys {
		if got := n.values["series "+k.GetKey()]; got == 0 {
			return nil, failure(codes.NotFound, "NUMBER_NOT_FOUND", "keys")
		} else if k.GetNumber() != 0 && k.GetNumber() != got {
			return nil, failure(codes.Aborted, "CONCURRENCY", "keys")
		}
		n.values["state "+k.GetKey()] = state
		numbers = append(numbers, n.numberOf(k.GetKey(), ""))
	}
	return numbers, nil
}

func (n *fakeNode) ConfirmNumbers(ctx context.Context, r *idnodev1.ConfirmNumbersRequest) (*idnodev1.ConfirmNumbersResponse, error) {
	return serve(ctx, n, r, nil, func(index uint64) (*idnodev1.ConfirmNumbersResponse, error) {
		numbers, err := n.end(r.GetKeys(), 1)
		return &idnodev1.ConfirmNumbersResponse{Numbers: numbers, LogIndex: index}, err
	})
}

func (n *fakeNode) VoidNumbers(ctx context.Context, r *idnodev1.VoidNumbersRequest) (*idnodev1.VoidNumbersResponse, error) {
	return serve(ctx, n, r, nil, func(index uint64) (*idnodev1.VoidNumbersResponse, error) {
		numbers, err := n.end(r.GetKeys(), 2)
		return &idnodev1.VoidNumbersResponse{Numbers: numbers, LogIndex: index}, err
	})
}

func (n *fakeNode) ReleaseNumbers(ctx context.Context, r *idnodev1.ReleaseNumbersRequest) (*idnodev1.ReleaseNumbersResponse, error) {
	return serve(ctx, n, r, nil, func(index uint64) (*idnodev1.ReleaseNumbersResponse, error) {
		numbers, err := n.end(r.GetKeys(), 3)
		return &idnodev1.ReleaseNumbersResponse{Numbers: numbers, LogIndex: index}, err
	})
}

func (n *fakeNode) WhoHas(ctx context.Context, r *idnodev1.WhoHasRequest) (*idnodev1.WhoHasResponse, error) {
	return serve(ctx, n, r, nil, func(index uint64) (*idnodev1.WhoHasResponse, error) {
		if n.values["series "+r.GetKey()] == 0 {
			return nil, failure(codes.NotFound, "NUMBER_NOT_FOUND", "")
		}
		return &idnodev1.WhoHasResponse{Number: n.numberOf(r.GetKey(), ""), LogIndex: index}, nil
	})
}

func (n *fakeNode) ReconcileNumbers(ctx context.Context, r *idnodev1.ReconcileNumbersRequest) (*idnodev1.ReconcileNumbersResponse, error) {
	return serve(ctx, n, r, nil, func(index uint64) (*idnodev1.ReconcileNumbersResponse, error) {
		got := &idnodev1.ReconcileNumbersResponse{LogIndex: index}
		for _, b := range r.GetNumbers() {
			m := &idnodev1.SeriesNumber{
				Key: b.GetKey(), Scope: r.GetScope(), Number: b.GetNumber(),
				State: idnodev1.NumberState_NUMBER_STATE_CONFIRMED,
			}
			if b.GetKey() == "" {
				m.State, m.Reason = idnodev1.NumberState_NUMBER_STATE_VOIDED, r.GetReason()
			}
			got.Numbers = append(got.Numbers, m)
		}
		return got, nil
	})
}

func ExampleSeries() {
	endpoints, stop := exampleCluster() // 127.0.0.1:7400, 127.0.0.1:7410, 127.0.0.1:7420
	defer stop()
	ctx := context.Background()
	c, err := client.New(ctx, client.Config{Endpoints: endpoints})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)

	invoices := c.Series("invoices")
	// The order is stored already, without a number. A crash anywhere below is no harm:
	// a program that repeats the call gets the same number.
	numbers, err := invoices.Take(ctx, client.NumberRequest{Keys: []string{"orders/7-A"}})
	if err != nil {
		log.Fatal(err)
	}
	// Here the number is stored with the order.
	numbers, err = invoices.Confirm(ctx, numbers)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(numbers[0].Text, numbers[0].State)
	// Output: INV-000001 confirmed
}

// TestANumberIsAskedForAgain: when an answer is lost, the same call at another node gives
// the same number.
func TestANumberIsAskedForAgain(t *testing.T) {
	f := newCluster(t, 3)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	lost := false
	f.nodes[0].hook(nil, func(context.Context, proto.Message) error {
		if lost {
			return nil
		}
		lost = true
		f.lead("B")
		return failure(codes.Unavailable, "OUTCOME_UNKNOWN", "")
	})
	numbers, err := c.Series("invoices").Take(t.Context(), client.NumberRequest{
		Keys: []string{"a", "b"}, Values: map[string]string{"branch": "ULM"}, Date: "2026-11-23", Label: "till", ExpiresIn: time.Minute,
	}, client.WithDatabase("shop"))
	if err != nil || len(numbers) != 2 {
		t.Fatalf("%+v, %v", numbers, err)
	}
	want := client.DocumentNumber{
		Key: "b", Text: "INV-000002", Scope: []string{"2026"}, Number: 2, State: client.NumberOpen, Date: "2026-11-23",
		Taken: time.Unix(1_700_000_000, 0).UTC(), Label: "till", Note: "CAF 7",
	}
	if d := cmp.Diff(want, numbers[1]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	first := f.nodes[0].requests()[0].(*idnodev1.TakeNumbersRequest)
	if first.GetDatabase() != "shop" || first.GetSeries() != "invoices" || first.GetExpiresIn().AsDuration() != time.Minute ||
		first.GetValues()["branch"] != "ULM" {
		t.Errorf("%v", first)
	}
}

// TestNumbersAreEnded: with the number that the caller knows, and by the key alone.
func TestNumbersAreEnded(t *testing.T) {
	f := newCluster(t, 1)
	s := connect(t, client.Config{Endpoints: f.addrs()}).Series("invoices")
	ctx := t.Context()
	numbers, err := s.Take(ctx, client.NumberRequest{Keys: []string{"a", "b", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	confirmed, err := s.Confirm(ctx, numbers[:1])
	voided, err2 := s.Void(ctx, []client.DocumentNumber{{Key: "b"}}, "torn")
	released, err3 := s.Release(ctx, numbers[2:])
	if err := errors.Join(err, err2, err3); err != nil || confirmed[0].State != client.NumberConfirmed ||
		voided[0].State != client.NumberVoided || released[0].State != client.NumberReleased {
		t.Errorf("%v %v %v, %v", confirmed, voided, released, err)
	}
	if found, err := s.Find(ctx, "b"); err != nil || found.Number != 2 || found.State != client.NumberVoided {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := s.Confirm(ctx, []client.DocumentNumber{{Key: "a", Number: 9}}); !errors.Is(err, client.ErrConcurrency) {
		t.Errorf("another number: %v", err)
	}
	if _, err := s.Find(ctx, "z"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("an unknown key: %v", err)
	}
	f.nodes[0].hook(always(failure(codes.FailedPrecondition, "RESERVATION_EXPIRED", "keys")), nil)
	if _, err := s.Confirm(ctx, numbers); !errors.Is(err, client.ErrReservationExpired) {
		t.Errorf("an expired number: %v", err)
	}
}

// TestALostAnswerAboutNumbersIsUnknown: the error of a call with a try that may have taken
// effect says so, whatever later tries return. The document may have a number.
func TestALostAnswerAboutNumbersIsUnknown(t *testing.T) {
	of := []client.DocumentNumber{{Key: "a"}}
	calls := map[string]func(context.Context, client.Series) error{
		"take": func(ctx context.Context, s client.Series) error {
			_, err := s.Take(ctx, client.NumberRequest{Keys: []string{"a"}})
			return err
		},
		"confirm": func(ctx context.Context, s client.Series) error { _, err := s.Confirm(ctx, of); return err },
		"void":    func(ctx context.Context, s client.Series) error { _, err := s.Void(ctx, of, "torn"); return err },
		"release": func(ctx context.Context, s client.Series) error { _, err := s.Release(ctx, of); return err },
	}
	for name, call := range calls {
		for later, then := range map[string]error{
			"no quorum": failure(codes.Unavailable, "NO_QUORUM", ""),
			"no answer": failure(codes.Unavailable, "", ""),
		} {
			t.Run(name+", then "+later, func(t *testing.T) {
				t.Parallel()
				f := newCluster(t, 1)
				s := connect(t, client.Config{Endpoints: f.addrs(), Timeout: 300 * time.Millisecond}).Series("invoices")
				if _, err := s.Take(t.Context(), client.NumberRequest{Keys: []string{"a"}}); err != nil {
					t.Fatal(err)
				}
				f.nodes[0].hook(nil, func(context.Context, proto.Message) error {
					f.nodes[0].hook(always(then), nil)
					return failure(codes.Unavailable, "", "") // As gRPC says of a connection that broke.
				})
				err := call(t.Context(), s)
				if !errors.Is(err, client.ErrOutcomeUnknown) || errors.Is(err, client.ErrNoEndpoint) {
					t.Errorf("error %v", err)
				}
			})
		}
	}
	f := newCluster(t, 1)
	s := connect(t, client.Config{Endpoints: f.addrs(), Timeout: 300 * time.Millisecond}).Series("invoices")
	f.nodes[0].hook(always(failure(codes.Unavailable, "", "")), nil)
	if _, err := s.Find(t.Context(), "a"); !errors.Is(err, client.ErrNoEndpoint) || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("a read: %v", err)
	}
}

// TestUnknownNumbersAreReconciled with the documents in the books.
func TestUnknownNumbersAreReconciled(t *testing.T) {
	f := newCluster(t, 1)
	s := connect(t, client.Config{Endpoints: f.addrs()}).Series("invoices")
	f.nodes[0].values["series a"], f.nodes[0].values["state a"] = 7, 4
	found, err := s.Find(t.Context(), "a")
	if err != nil || found.State != client.NumberUnknown || found.Key != "a" {
		t.Errorf("%+v, %v", found, err)
	}
	got, err := s.Reconcile(t.Context(), found.Scope, []client.DocumentNumber{found, {Number: 8}}, "torn", client.WithDatabase("shop"))
	want := []client.DocumentNumber{
		{Key: "a", Scope: []string{"2026"}, Number: 7, State: client.NumberConfirmed},
		{Scope: []string{"2026"}, Number: 8, State: client.NumberVoided, Reason: "torn"},
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}
