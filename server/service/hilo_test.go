package service

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/apierror"
)

func TestHiLo(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	ctx := context.Background()
	first, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "Users"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, first, &idnodev1.NextRangeResponse{
		Prefix: "Users/", Low: 1, High: 32, Size: 32, NodeTag: "A", RangeAt: timestamppb.New(w.Now()),
		Token: first.Token, LogIndex: first.LogIndex,
	})
	w.Advance(10 * time.Second)
	second, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{
		Tag: "users", Separator: "+", LastSize: 32, LastRangeAt: first.RangeAt,
	})
	if err != nil || second.Prefix != "users+" || second.Low != 33 || second.High != 96 {
		t.Fatalf("%+v %v", second, err)
	}
	if first.Token == second.Token {
		t.Error("two ranges have the same token")
	}
	got, err := n.GetHiLo(ctx, &idnodev1.GetHiLoRequest{Tag: "USERS"})
	if err != nil || got.Hilo.Tag != "users" || got.Hilo.Max != 96 {
		t.Errorf("get: %+v %v", got, err)
	}

	ret := func(low, high, last int64, token string) *idnodev1.ReturnRangeResponse {
		t.Helper()
		res, err := n.ReturnRange(ctx, &idnodev1.ReturnRangeRequest{Tag: "users", Low: low, High: high, Last: proto.Int64(last), Token: token})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if r := ret(33, 96, 40, first.Token); r.Returned || r.Max != 96 {
		t.Errorf("another range's token: %+v", r)
	}
	if r := ret(33, 96, 31, second.Token); r.Returned {
		t.Errorf("below the range: %+v", r)
	}
	if r := ret(33, 96, 40, second.Token); !r.Returned || r.Max != 40 {
		t.Errorf("the range: %+v", r)
	}
	if r := ret(33, 96, 40, second.Token); r.Returned || r.Max != 40 {
		t.Errorf("a repeat: %+v", r)
	}
	third, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "users", Size: 10})
	if err != nil || third.Low != 41 || third.Size != 10 {
		t.Fatalf("%+v %v", third, err)
	}
	res, err := n.ReturnRangeByHigh(ctx, &idnodev1.ReturnRangeRequest{Tag: "users", High: third.High, Last: proto.Int64(45)})
	if err != nil || !res.Returned || res.Max != 45 {
		t.Errorf("a return as HTTP makes it: %+v %v", res, err)
	}
}

func TestSetHiLo(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	_, err := n.GetHiLo(ctx, &idnodev1.GetHiLoRequest{Tag: "orders"})
	wantError(t, err, apierror.CodeNotFound, apierror.ReasonHiLoNotFound, "")
	set, err := n.SetHiLo(ctx, &idnodev1.SetHiLoRequest{Tag: "orders", Max: 32})
	if err != nil || set.Max != 32 {
		t.Fatalf("%+v %v", set, err)
	}
	_, err = n.SetHiLo(ctx, &idnodev1.SetHiLoRequest{Tag: "orders", Max: 64})
	wantError(t, err, apierror.CodeAborted, apierror.ReasonConcurrency, "expected")
	set, err = n.SetHiLo(ctx, &idnodev1.SetHiLoRequest{Tag: "Orders", Max: 64, Expected: 32})
	if err != nil || set.Max != 64 {
		t.Fatalf("%+v %v", set, err)
	}
}

// TestServerPrefix: the ids of such a node's ranges have its prefix and no tag.
func TestServerPrefix(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, func(c *Config) { c.ServerPrefix = "NorthServer" })
	res, err := n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: "orders"})
	if err != nil || res.Prefix != "orders/NorthServer/" || res.NodeTag != "" {
		t.Fatalf("%+v %v", res, err)
	}
	longest := strings.Repeat("x", 2025-19-2-len("NorthServer"))
	if _, err := n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: longest}); err != nil {
		t.Errorf("the longest tag beside the prefix: %v", err)
	}
	before := w.Proposals()
	_, err = n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: longest + "x"})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidTag, "tag")
	if w.Proposals() != before {
		t.Error("a refused request was proposed")
	}
}

func TestHiLoLimits(t *testing.T) {
	at := time.Unix(0, 0)
	checkLimits(t, []limitTest{
		{"tag", callRange(&idnodev1.NextRangeRequest{Tag: strings.Repeat("x", 2000)}), "", ""},
		{"tag too long", callRange(&idnodev1.NextRangeRequest{Tag: strings.Repeat("x", 2001)}), apierror.ReasonInvalidTag, "tag"},
		{"tag folds too long", callRange(&idnodev1.NextRangeRequest{Tag: strings.Repeat("Ⱥ", 1000)}), apierror.ReasonInvalidTag, "tag"},
		{"empty tag", callRange(&idnodev1.NextRangeRequest{}), apierror.ReasonInvalidTag, "tag"},
		{"tag with the separator", callRange(&idnodev1.NextRangeRequest{Tag: "u/"}), apierror.ReasonInvalidTag, "tag"},
		{"tag with another separator", callRange(&idnodev1.NextRangeRequest{Tag: "u/", Separator: "."}), "", ""},
		{"tag with a pipe", callRange(&idnodev1.NextRangeRequest{Tag: "u|"}), apierror.ReasonInvalidTag, "tag"},
		{"separator", callRange(&idnodev1.NextRangeRequest{Tag: "u", Separator: "|"}), apierror.ReasonInvalidSeparator, "separator"},
		{"database", callRange(&idnodev1.NextRangeRequest{Tag: "u", Database: "/"}), apierror.ReasonInvalidDatabase, "database"},
		{"size", callRange(&idnodev1.NextRangeRequest{Tag: "u", Size: 1 << 20}), "", ""},
		{"label", callRange(&idnodev1.NextRangeRequest{Tag: "u", Label: strings.Repeat("ü", 32)}), "", ""},
		{"label too long", callRange(&idnodev1.NextRangeRequest{Tag: "u", Label: strings.Repeat("x", 65)}), apierror.ReasonInvalidLabel, "label"},
		{"label with a control character", callRange(&idnodev1.NextRangeRequest{Tag: "u", Label: "a\nb"}), apierror.ReasonInvalidLabel, "label"},
		{"label that is no text", callRange(&idnodev1.NextRangeRequest{Tag: "u", Label: "\xff"}), apierror.ReasonInvalidLabel, "label"},
		{"size too large", callRange(&idnodev1.NextRangeRequest{Tag: "u", Size: 1<<20 + 1}), apierror.ReasonInvalidSize, "size"},
		{"size negative", callRange(&idnodev1.NextRangeRequest{Tag: "u", Size: -1}), apierror.ReasonInvalidSize, "size"},
		{"last size", callRange(&idnodev1.NextRangeRequest{Tag: "u", LastSize: math.MaxInt64}), "", ""},
		{"last size negative", callRange(&idnodev1.NextRangeRequest{Tag: "u", LastSize: -1}), apierror.ReasonInvalidSize, "last_size"},
		{"last max", callRange(&idnodev1.NextRangeRequest{Tag: "u", LastMax: 1 << 32}), "", ""},
		{"last max negative", callRange(&idnodev1.NextRangeRequest{Tag: "u", LastMax: -1}), apierror.ReasonInvalidLastMax, "last_max"},
		{"last range", callRange(&idnodev1.NextRangeRequest{Tag: "u", LastRangeAt: timestamppb.New(at)}), "", ""},
		{
			"last range too early", callRange(&idnodev1.NextRangeRequest{Tag: "u", LastRangeAt: timestamppb.New(time.Time{})}),
			apierror.ReasonInvalidLastRangeAt, "last_range_at",
		},
		{
			"last range too late", callRange(&idnodev1.NextRangeRequest{Tag: "u", LastRangeAt: timestamppb.New(at.AddDate(300, 0, 0))}),
			apierror.ReasonInvalidLastRangeAt, "last_range_at",
		},
		{
			"range request id", callRange(&idnodev1.NextRangeRequest{Tag: "u", RequestId: &idnodev1.RequestId{}}),
			apierror.ReasonInvalidRequestID, "request_id",
		},
		{"return: tag", callReturn(&idnodev1.ReturnRangeRequest{Low: 1, High: 2, Last: proto.Int64(0)}), apierror.ReasonInvalidTag, "tag"},
		{"return: low", callReturn(&idnodev1.ReturnRangeRequest{Tag: "u", High: 2, Last: proto.Int64(0)}), apierror.ReasonInvalidLow, "low"},
		{"return: high", callReturn(&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, Last: proto.Int64(0)}), apierror.ReasonInvalidHigh, "high"},
		{
			"return: token missing", callReturn(&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 2, Last: proto.Int64(1)}),
			apierror.ReasonInvalidToken, "token",
		},
		{
			"return: token without token",
			callReturn(&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 2, Last: proto.Int64(1), Token: aToken, WithoutToken: true}),
			apierror.ReasonInvalidToken, "token",
		},
		{
			"return: no last", callReturn(&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 2, Token: aToken}),
			apierror.ReasonInvalidLast, "last",
		},
		{
			"return: last", callReturn(&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 2, Last: proto.Int64(-1)}),
			apierror.ReasonInvalidLast, "last",
		},
		{
			"return: token", callReturn(&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 2, Token: aToken[1:], Last: proto.Int64(0)}),
			apierror.ReasonInvalidToken, "token",
		},
		{
			"return: unknown tag",
			callReturn(&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 2, Token: aToken, Last: proto.Int64(0)}), "", "",
		},
		{"set: tag", callSet(&idnodev1.SetHiLoRequest{Tag: "u/", Max: 1}), apierror.ReasonInvalidTag, "tag"},
		{"set: expected", callSet(&idnodev1.SetHiLoRequest{Tag: "u", Expected: -1}), apierror.ReasonInvalidExpected, "expected"},
		{"set: max", callSet(&idnodev1.SetHiLoRequest{Tag: "u", Max: -1}), apierror.ReasonInvalidMax, "max"},
		{"set: max below expected", callSet(&idnodev1.SetHiLoRequest{Tag: "u", Max: 4, Expected: 5}), apierror.ReasonInvalidMax, "max"},
		{"set: greatest", callSet(&idnodev1.SetHiLoRequest{Tag: "u", Max: math.MaxInt64}), "", ""},
	})
}

// TestLastMaxTooFar: only the state can decide how far is too far.
func TestLastMaxTooFar(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	err := callRange(&idnodev1.NextRangeRequest{Tag: "u", LastMax: 1<<32 + 1})(n)
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidLastMax, "last_max")
}

// TestRangeBeforeTheTag: a range's ids end with the tag, so it waits for that.
func TestRangeBeforeTheTag(t *testing.T) {
	n := newNode(t, newWorld(t), func(c *Config) { c.Tag = func() (string, bool) { return "A", false } })
	err := callRange(&idnodev1.NextRangeRequest{Tag: "u"})(n)
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonStarting, "")
}

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
	wantError(t, err, apierror.CodeNotFound, apierror.ReasonHiLoNotFound, "")
	_, err = n.WhoHolds(ctx, &idnodev1.WhoHoldsRequest{Tag: "users"})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidNumber, "number")
}

// aToken is a token that is well formed.
const aToken = "0123456789abcdef"
