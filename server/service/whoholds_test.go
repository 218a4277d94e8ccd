package service

import (
	"testing"
	"time"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/hilo"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

func TestWhoHolds(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	ctx := as("CN=till")
	next := func(label string) NextRangeResponse {
		t.Helper()
		res, err := n.NextRange(ctx, NextRangeRequest{Tag: "users", Size: 10, Label: label})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	check := func(number int64, want WhoHoldsResponse) {
		t.Helper()
		got, err := n.WhoHolds(ctx, WhoHoldsRequest{Tag: "Users", Number: number})
		if err != nil {
			t.Fatal(err)
		}
		want.LogIndex = got.LogIndex
		same(t, got, want)
	}
	issued := w.Now().UTC().Truncate(time.Second)

	next("till3")
	next("till3")
	last := next("")
	w.Must(op.Envelope{Database: "default"}, &raftlogv1.HiLoNext{Tag: "users", Size: 10, ServerTag: "B", Reserve: true})
	ann := fsm.RangeHolder{Label: "till3", Principal: "CN=till", Node: "A", Issued: issued}
	check(10, WhoHoldsResponse{State: RangeOutstanding, Range: hilo.Range{Low: 1, High: 10}, Holder: ann, Known: true})
	check(11, WhoHoldsResponse{State: RangeOutstanding, Range: hilo.Range{Low: 11, High: 20}, Holder: ann, Known: true})
	check(20, WhoHoldsResponse{State: RangeOutstanding, Range: hilo.Range{Low: 11, High: 20}, Holder: ann, Known: true})
	ann.Label = ""
	check(21, WhoHoldsResponse{State: RangeOutstanding, Range: hilo.Range{Low: 21, High: 30}, Holder: ann, Known: true})
	reserve := fsm.RangeHolder{Node: "B", Reserve: true, Issued: issued}
	check(31, WhoHoldsResponse{State: RangeReserved, Range: hilo.Range{Low: 31, High: 40}, Holder: reserve, Known: true})
	check(41, WhoHoldsResponse{State: RangeNotIssued})
	next("")
	check(1, WhoHoldsResponse{State: RangeNotRemembered})

	till := "CN=till"
	w.Must(op.Envelope{Database: "default", Principal: &till}, &raftlogv1.HiLoReturn{Tag: "users", Low: 41, High: 50, Last: 45})
	check(last.Low, WhoHoldsResponse{State: RangeNotRemembered})
	check(46, WhoHoldsResponse{State: RangeNotIssued})

	_, err := n.WhoHolds(ctx, WhoHoldsRequest{Tag: "nobody's", Number: 1})
	wantError(t, err, NotFound, ReasonHiLoNotFound, "")
	_, err = n.WhoHolds(ctx, WhoHoldsRequest{Tag: "users"})
	wantError(t, err, InvalidArgument, ReasonInvalidNumber, "number")
}
