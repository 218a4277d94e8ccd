package service

import (
	"context"
	"errors"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/server/apierror"
)

var errGone = errors.New("the caller has gone")

// streamed returns the first and the last id of each block of a stream, as many as most, after which
// the caller goes.
func (n node) streamed(req *idnodev1.StreamServerSideIdsRequest, most int) (blocks [][2]int64, err error) {
	err = n.StreamServerSideIds(context.Background(), req, func(res *idnodev1.StreamServerSideIdsResponse) error {
		blocks = append(blocks, [2]int64{res.GetBlock().GetFirst(), res.GetBlock().GetLast()})
		if n.InFlight() != 0 {
			return errors.New("the stream counts as a call between two blocks")
		}
		if len(blocks) == most {
			return errGone
		}
		return nil
	})
	return blocks, err
}

// TestServerSideStreamFailures: a block that failed ends the stream, and took nothing.
func TestServerSideStreamFailures(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	req := &idnodev1.StreamServerSideIdsRequest{Template: "users/", Count: 5, BlockSize: 3}
	for _, want := range []struct {
		err    error
		code   apierror.Code
		reason string
	}{
		{etag.ErrStalled, apierror.CodeUnavailable, apierror.ReasonOverloaded},
		{etag.ErrExhausted, apierror.CodeOutOfRange, apierror.ReasonCounterExhausted},
	} {
		n.etags.err = want.err
		_, err := n.streamed(req, 9)
		wantError(t, err, want.code, want.reason, "")
	}
	n.etags.err = nil
	blocks, err := n.streamed(req, 9)
	if err != nil {
		t.Fatal(err)
	}
	same(t, blocks, [][2]int64{{1, 3}, {4, 5}})
}

// TestServerSideStreamHasNoEnd unless it was given a count.
func TestServerSideStreamHasNoEnd(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	blocks, err := n.streamed(&idnodev1.StreamServerSideIdsRequest{Template: "users/"}, 100)
	if !errors.Is(err, errGone) || len(blocks) != 100 {
		t.Fatalf("%d blocks, and %v", len(blocks), err)
	}
	for i, b := range blocks {
		if b[0] != int64(i)*DefaultBlockSize+1 || b[1]-b[0]+1 != DefaultBlockSize {
			t.Errorf("block %d is %v", i, b)
		}
	}
}

func TestServerSideStreamWithoutTag(t *testing.T) {
	n := newNode(t, newWorld(t), func(c *Config) { c.Tag = func() (string, bool) { return "A", false } })
	_, err := n.streamed(&idnodev1.StreamServerSideIdsRequest{Template: "users/"}, 1)
	wantError(t, err, apierror.CodeFailedPrecondition, apierror.ReasonNodeTagNotAssigned, "")
}
