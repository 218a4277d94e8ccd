package service

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

func TestClaims(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	res, err := n.Claim(ctx, &idnodev1.ClaimRequest{Id: "Users/Ayende"})
	if err != nil || res.Id != "Users/Ayende" || res.LogIndex == 0 {
		t.Fatalf("%+v %v", res, err)
	}
	_, err = n.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/ayende"})
	wantError(t, err, apierror.CodeAlreadyExists, apierror.ReasonIDClaimed, "id")
	if _, err := n.Claim(ctx, &idnodev1.ClaimRequest{Database: "other", Id: "users/ayende"}); err != nil {
		t.Errorf("the same id in another database: %v", err)
	}
	if _, err := n.Release(ctx, &idnodev1.ReleaseRequest{Id: "USERS/AYENDE"}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/ayende"}); err != nil {
		t.Errorf("claim again after the release: %v", err)
	}
}

// TestWhatANodeGaveIsNotClaimed, nor what it will give: server-side ids and ids of HiLo ranges, under every separator and in
// each case of letters. A member that is removed later keeps its ids.
func TestWhatANodeGaveIsNotClaimed(t *testing.T) {
	n, ctx := newNode(t, newWorld(t), nil), context.Background()
	for _, separator := range []string{"/", ":", "Ⓐ"} {
		var ids []string
		given, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: "srv" + separator, Separator: separator, Count: 3})
		if err != nil {
			t.Fatal(err)
		}
		r, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "usr", Separator: separator})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, given.GetIds()...)
		for _, number := range []int64{r.GetLow(), r.GetHigh(), r.GetHigh() + 1, math.MaxInt64} {
			ids = append(ids, fmt.Sprint(r.GetPrefix(), number, "-", r.GetNodeTag()))
		}
		for _, id := range ids {
			for _, id := range []string{id, docid.Fold(id)} {
				_, err := n.Claim(ctx, &idnodev1.ClaimRequest{Id: id, Separator: separator})
				wantError(t, err, apierror.CodeAlreadyExists, apierror.ReasonIDClaimed, "id")
				_, err = n.Generate(ctx, &idnodev1.GenerateRequest{Template: id, Separator: separator, Claim: true})
				wantError(t, err, apierror.CodeAlreadyExists, apierror.ReasonIDClaimed, "template")
			}
		}
	}
	if _, err := n.Claim(ctx, &idnodev1.ClaimRequest{Id: "usr/3-ZZ"}); err != nil {
		t.Errorf("the tag of no node: %v", err)
	}
}

// TestReleaseUnderAnotherSeparator: every id that can be claimed can be released, although a
// release has no separator; likewise a counter can be read, and its ranges returned.
func TestReleaseUnderAnotherSeparator(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	if _, err := n.Claim(ctx, &idnodev1.ClaimRequest{Id: "a/", Separator: "."}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Release(ctx, &idnodev1.ReleaseRequest{Id: "a/"}); err != nil {
		t.Errorf("release: %v", err)
	}
	rng, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "a/", Separator: "."})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.GetHiLo(ctx, &idnodev1.GetHiLoRequest{Tag: "a/"}); err != nil {
		t.Errorf("get: %v", err)
	}
	back := &idnodev1.ReturnRangeRequest{Tag: "a/", Low: rng.Low, High: rng.High, Last: proto.Int64(1), Token: rng.Token}
	ret, err := n.ReturnRange(ctx, back)
	if err != nil || !ret.Returned {
		t.Errorf("return: %+v %v", ret, err)
	}
}

func TestClaimLimits(t *testing.T) {
	long := strings.Repeat("x", 2026)
	claim, release := calling((*Service).Claim), calling((*Service).Release)
	checkLimits(t, []limitTest{
		{"longest", claim(&idnodev1.ClaimRequest{Id: long[1:]}), "", ""},
		{"too long", claim(&idnodev1.ClaimRequest{Id: long}), apierror.ReasonInvalidID, "id"},
		{"folds too long", claim(&idnodev1.ClaimRequest{Id: strings.Repeat("Ⱥ", 900)}), apierror.ReasonInvalidID, "id"},
		{"empty", claim(&idnodev1.ClaimRequest{}), apierror.ReasonInvalidID, "id"},
		{"ends with the separator", claim(&idnodev1.ClaimRequest{Id: "a:", Separator: ":"}), apierror.ReasonInvalidID, "id"},
		{"ends with a pipe", claim(&idnodev1.ClaimRequest{Id: "a|"}), apierror.ReasonInvalidID, "id"},
		{"separator", claim(&idnodev1.ClaimRequest{Id: "a", Separator: "ab"}), apierror.ReasonInvalidSeparator, "separator"},
		{"database", claim(&idnodev1.ClaimRequest{Id: "a", Database: "a/b"}), apierror.ReasonInvalidDatabase, "database"},
		{"request id", claim(&idnodev1.ClaimRequest{Id: "a", RequestId: &idnodev1.RequestId{}}), apierror.ReasonInvalidRequestID, "request_id"},
		{"release: too long", release(&idnodev1.ReleaseRequest{Id: long}), apierror.ReasonInvalidID, "id"},
		{"release: folds too long", release(&idnodev1.ReleaseRequest{Id: strings.Repeat("Ⱥ", 900)}), apierror.ReasonInvalidID, "id"},
		{"release: pipe", release(&idnodev1.ReleaseRequest{Id: "a|"}), apierror.ReasonInvalidID, "id"},
		{"release: database", release(&idnodev1.ReleaseRequest{Id: "a", Database: "a/b"}), apierror.ReasonInvalidDatabase, "database"},
		{
			"release: request id", release(&idnodev1.ReleaseRequest{Id: "a", RequestId: &idnodev1.RequestId{}}),
			apierror.ReasonInvalidRequestID, "request_id",
		},
	})
}

// TestDrain: new calls are refused at once, those in flight are waited for as
// long as ctx allows.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	block := make(chan struct{})
	w.Set(func(f *fsmtest.Faults) { f.Gate = block })
	ended := make(chan error, 1)
	go func() { ended <- callNext(&idnodev1.NextIdentityRequest{Name: "u"})(n) }()
	await(t, func() bool { return n.InFlight() == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := n.Drain(ctx); err == nil {
		t.Error("drained with a call in flight")
	}
	_, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{})
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonStopping, "")
	n.Status()
	close(block)
	if err := n.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
}
