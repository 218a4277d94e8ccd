package service

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestClaims(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	res, err := n.Claim(ctx, ClaimRequest{ID: "Users/Ayende"})
	if err != nil || res.ID != "Users/Ayende" || res.LogIndex == 0 {
		t.Fatalf("%+v %v", res, err)
	}
	_, err = n.Claim(ctx, ClaimRequest{ID: "users/ayende"})
	wantError(t, err, AlreadyExists, ReasonIDClaimed, "id")
	if _, err := n.Claim(ctx, ClaimRequest{Database: "other", ID: "users/ayende"}); err != nil {
		t.Errorf("the same id in another database: %v", err)
	}
	if _, err := n.Release(ctx, ReleaseRequest{ID: "USERS/AYENDE"}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Claim(ctx, ClaimRequest{ID: "users/ayende"}); err != nil {
		t.Errorf("claim again after the release: %v", err)
	}
}

// TestReleaseUnderAnotherSeparator: what can be claimed can be released, although
// a release names no separator; likewise a counter can be read and returned to.
func TestReleaseUnderAnotherSeparator(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	if _, err := n.Claim(ctx, ClaimRequest{ID: "a/", Separator: "."}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Release(ctx, ReleaseRequest{ID: "a/"}); err != nil {
		t.Errorf("release: %v", err)
	}
	rng, err := n.NextRange(ctx, NextRangeRequest{Tag: "a/", Separator: "."})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.GetHiLo(ctx, GetHiLoRequest{Tag: "a/"}); err != nil {
		t.Errorf("get: %v", err)
	}
	ret, err := n.ReturnRange(ctx, ReturnRangeRequest{Tag: "a/", Low: rng.Low, High: rng.High, Last: 1, Token: rng.Token[:]})
	if err != nil || !ret.Returned {
		t.Errorf("return: %+v %v", ret, err)
	}
}

func TestClaimLimits(t *testing.T) {
	long := strings.Repeat("x", 2026)
	claim := func(r ClaimRequest) func(node) error {
		return func(n node) error { _, err := n.Claim(context.Background(), r); return err }
	}
	release := func(r ReleaseRequest) func(node) error {
		return func(n node) error { _, err := n.Release(context.Background(), r); return err }
	}
	tests := []struct {
		name          string
		call          func(node) error
		reason, field string
	}{
		{"longest", claim(ClaimRequest{ID: long[1:]}), "", ""},
		{"too long", claim(ClaimRequest{ID: long}), ReasonInvalidID, "id"},
		{"folds too long", claim(ClaimRequest{ID: strings.Repeat("Ⱥ", 900)}), ReasonInvalidID, "id"},
		{"empty", claim(ClaimRequest{}), ReasonInvalidID, "id"},
		{"ends with the separator", claim(ClaimRequest{ID: "a:", Separator: ":"}), ReasonInvalidID, "id"},
		{"ends with a pipe", claim(ClaimRequest{ID: "a|"}), ReasonInvalidID, "id"},
		{"separator", claim(ClaimRequest{ID: "a", Separator: "ab"}), ReasonInvalidSeparator, "separator"},
		{"database", claim(ClaimRequest{ID: "a", Database: "a/b"}), ReasonInvalidDatabase, "database"},
		{"request id", claim(ClaimRequest{ID: "a", RequestID: &RequestID{}}), ReasonInvalidRequestID, "request_id"},
		{"release: too long", release(ReleaseRequest{ID: long}), ReasonInvalidID, "id"},
		{"release: folds too long", release(ReleaseRequest{ID: strings.Repeat("Ⱥ", 900)}), ReasonInvalidID, "id"},
		{"release: pipe", release(ReleaseRequest{ID: "a|"}), ReasonInvalidID, "id"},
		{"release: database", release(ReleaseRequest{ID: "a", Database: "a/b"}), ReasonInvalidDatabase, "database"},
		{"release: request id", release(ReleaseRequest{ID: "a", RequestID: &RequestID{}}), ReasonInvalidRequestID, "request_id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkLimit(t, tt.call, tt.reason, tt.field) })
	}
}

// TestDrain: new calls are refused at once, those in flight are waited for as
// long as ctx allows.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	block := make(chan struct{})
	w.set(func(w *world) { w.block = block })
	ended := make(chan error, 1)
	go func() { ended <- callNext(NextIdentityRequest{Name: "u"})(n) }()
	await(t, func() bool { return n.inFlight.Load() == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := n.Drain(ctx); err == nil {
		t.Error("drained with a call in flight")
	}
	_, err := n.Generate(context.Background(), GenerateRequest{})
	wantError(t, err, Unavailable, ReasonStopping, "")
	n.GetStatus()
	close(block)
	if err := n.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
}
