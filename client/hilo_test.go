package client_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

func TestHiLoHandleIsShared(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	slash, g := c.HiLo("users"), c.HiLo("users", client.WithSeparator("#"))
	if slash != c.HiLo("users", client.WithFirstSize(5)) || slash == g {
		t.Error("handles are mixed up")
	}
	n, err := g.Next(t.Context())
	if err != nil || n.Value() != 1 || n.NodeTag() != "A" || n.String() != "users#1-A" {
		t.Error(n, err)
	}
}

// TestHiLoRestartsLeaveNoHole uses up ranges from many goroutines, closes and
// goes on with another client.
func TestHiLoRestartsLeaveNoHole(t *testing.T) {
	f := newCluster(t, 2)
	var got []int64
	for range 4 {
		c := connect(t, client.Config{Endpoints: f.addrs()})
		g := c.HiLo("users", client.WithFirstSize(3))
		got = append(got, together(t, 50, 7, func() (int64, error) {
			n, err := g.Next(t.Context())
			return n.Value(), err
		})...)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	wantCounted(t, got)
}

// TestCloseIsBounded though the cluster does not answer.
func TestCloseIsBounded(t *testing.T) {
	f := newCluster(t, 1)
	c, err := client.New(t.Context(), client.Config{Endpoints: f.addrs()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.NextHiLoID(t.Context(), "users"); err != nil {
		t.Fatal(err)
	}
	f.nodes[0].hook(hang, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

func TestHiLoErrorsAreTheClients(t *testing.T) {
	f := newCluster(t, 1)
	f.nodes[0].hook(always(failure(codes.ResourceExhausted, "QUOTA", "")), nil)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	if _, err := c.NextHiLoID(t.Context(), "users"); !errors.Is(err, client.ErrQuota) {
		t.Error(err)
	}
}

// TestARangeSaysWhoAsks: by default the names of host and program.
func TestARangeSaysWhoAsks(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{"": client.LabelOf(host, filepath.Base(os.Args[0])), "till 3": "till 3"} {
		f := newCluster(t, 1)
		c := connect(t, client.Config{Endpoints: f.addrs(), Label: label})
		if _, err := c.NextHiLoID(t.Context(), "users"); err != nil {
			t.Fatal(err)
		}
		asked := slices.ContainsFunc(f.nodes[0].requests(), func(m proto.Message) bool {
			req, ok := m.(*idnodev1.NextRangeRequest)
			return ok && req.GetLabel() == want
		})
		if want == "" || !asked {
			t.Errorf("no call was labelled %q", want)
		}
	}
	for _, wrong := range []string{strings.Repeat("x", 65), "a\nb", "a\xff"} {
		if _, err := client.New(t.Context(), client.Config{Endpoints: []string{"a:1"}, Label: wrong}); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestADefaultLabelFits whatever host and program are called.
func TestADefaultLabelFits(t *testing.T) {
	for names, want := range map[[2]string]string{
		{"till-3", "books"}:                   "till-3 books",
		{"", "books"}:                         "books",
		{"a\nb", "\u202ebooks"}:               "ab books",
		{strings.Repeat("x", 63), "ü"}:        strings.Repeat("x", 63) + " ",
		{strings.Repeat("x", 62), "ü"}:        strings.Repeat("x", 62) + " ",
		{strings.Repeat("x", 61), "ü"}:        strings.Repeat("x", 61) + " ü",
		{"x", "\xff"}:                         "x \ufffd",
		{strings.Repeat("€", 30), "whatever"}: strings.Repeat("€", 21),
	} {
		if got := client.LabelOf(names[0], names[1]); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}

func TestWhoHolds(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs(), Label: "till 3"})
	if _, err := c.NextRange(t.Context(), "users", client.RangeRequest{Size: 10}); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int64]client.RangeHolder{
		10: {State: client.RangeOutstanding, Low: 1, High: 10, Label: "till 3", NodeTag: "A", IssuedAt: time.Unix(1_700_000_000, 0).UTC()},
		11: {State: client.RangeNotIssued},
	} {
		if got, err := c.WhoHolds(t.Context(), "users", number); err != nil || got != want {
			t.Errorf("%d: %+v %v, want %+v", number, got, err, want)
		}
	}
}

func TestRanges(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	r, err := c.NextRange(t.Context(), "users", client.RangeRequest{Size: 10})
	if err != nil || r.Low != 1 || r.High != 10 || r.Prefix != "users/" || r.NodeTag != "A" || r.Granted != 10 {
		t.Fatalf("%+v %v", r, err)
	}
	for _, want := range []bool{true, false} {
		if returned, err := c.ReturnRange(t.Context(), "users", r, 4); returned != want || err != nil {
			t.Error(returned, err)
		}
	}
	next, err := c.NextRange(t.Context(), "users", client.RangeRequest{LastSize: r.Granted, LastRangeAt: r.At})
	if err != nil || next.Low != 5 || next.Granted != 32 {
		t.Errorf("%+v %v", next, err)
	}
}
