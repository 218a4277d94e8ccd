package service

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

func TestWhoHolds(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	ctx := as("CN=till")
	next := func(label string) *idnodev1.NextRangeResponse {
		t.Helper()
		res, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "users", Size: 10, Label: label})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	check := func(number int64, want *idnodev1.WhoHoldsResponse) {
		t.Helper()
		got, err := n.WhoHolds(ctx, &idnodev1.WhoHoldsRequest{Tag: "Users", Number: number})
		if err != nil {
			t.Fatal(err)
		}
		want.LogIndex = got.LogIndex
		same(t, got, want)
	}
	issued := timestamppb.New(w.Now().Truncate(time.Second))

	next("till3")
	next("till3")
	last := next("")
	w.Must(op.Envelope{Database: "default"}, &raftlogv1.HiLoNext{Tag: "users", Size: 10, ServerTag: "B", Reserve: true})
	ann := &idnodev1.RangeHolder{Label: "till3", Principal: "CN=till", NodeTag: "A", IssuedAt: issued}
	check(10, &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_OUTSTANDING, Low: 1, High: 10, Holder: ann})
	check(11, &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_OUTSTANDING, Low: 11, High: 20, Holder: ann})
	check(20, &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_OUTSTANDING, Low: 11, High: 20, Holder: ann})
	ann.Label = ""
	check(21, &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_OUTSTANDING, Low: 21, High: 30, Holder: ann})
	reserve := &idnodev1.RangeHolder{NodeTag: "B", IssuedAt: issued}
	check(31, &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_RESERVED, Low: 31, High: 40, Holder: reserve})
	check(41, &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_NOT_ISSUED})
	next("")
	check(1, &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_NOT_REMEMBERED})

	till := "CN=till"
	w.Must(op.Envelope{Database: "default", Principal: &till}, &raftlogv1.HiLoReturn{Tag: "users", Low: 41, High: 50, Last: 45})
	check(last.Low, &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_NOT_REMEMBERED})
	check(46, &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_NOT_ISSUED})

	_, err := n.WhoHolds(ctx, &idnodev1.WhoHoldsRequest{Tag: "nobody's", Number: 1})
	wantError(t, err, NotFound, ReasonHiLoNotFound, "")
	_, err = n.WhoHolds(ctx, &idnodev1.WhoHoldsRequest{Tag: "users"})
	wantError(t, err, InvalidArgument, ReasonInvalidNumber, "number")
}
