package service

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/etag"
)

func openStream(t *testing.T, n node, req *idnodev1.StreamServerSideIdsRequest) *ServerSideStream {
	t.Helper()
	stream, err := n.ServerSideStream(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// TestServerSideStreamFailures: a block that failed took nothing off the count,
// so that a stream may go on after an error.
func TestServerSideStreamFailures(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	stream := openStream(t, n, &idnodev1.StreamServerSideIdsRequest{Template: "users/", Count: 5, BlockSize: 3})
	for _, want := range []struct {
		err    error
		code   Code
		reason string
	}{
		{etag.ErrStalled, Unavailable, ReasonOverloaded},
		{etag.ErrExhausted, OutOfRange, ReasonCounterExhausted},
	} {
		n.etags.err = want.err
		_, err := stream.Next(context.Background())
		wantError(t, err, want.code, want.reason, "")
	}
	n.etags.err = nil
	for _, want := range [][2]int64{{1, 3}, {4, 5}} {
		b, err := stream.Next(context.Background())
		if err != nil || b.First != want[0] || b.Last != want[1] {
			t.Errorf("%v %v, want %v", b, err, want)
		}
	}
	if _, err := stream.Next(context.Background()); !errors.Is(err, io.EOF) {
		t.Errorf("after the last block: %v", err)
	}
}

// TestServerSideStreamHasNoEnd unless it was given a count.
func TestServerSideStreamHasNoEnd(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	stream := openStream(t, n, &idnodev1.StreamServerSideIdsRequest{Template: "users/"})
	for range 100 {
		if b, err := stream.Next(context.Background()); err != nil || b.Last-b.First+1 != DefaultBlockSize {
			t.Fatalf("%v %v", b, err)
		}
	}
	if n.inFlight.Load() != 0 {
		t.Error("the stream counts as a call between two blocks")
	}
}

func TestServerSideStreamWithoutTag(t *testing.T) {
	n := newNode(t, newWorld(t), func(c *Config) { c.Tag = func() (string, bool) { return "A", false } })
	_, err := n.ServerSideStream(context.Background(), &idnodev1.StreamServerSideIdsRequest{Template: "users/"})
	wantError(t, err, FailedPrecondition, ReasonTagNotAssigned, "")
}
