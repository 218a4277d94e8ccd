package grpcapi

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/service"
)

// TestStreamServerSideIds: blocks follow each other and are as many ids as were
// asked for.
func TestStreamServerSideIds(t *testing.T) {
	tests := []struct {
		name        string
		count, size int64
		blocks      int
	}{
		{"the default size", 2000, 0, 2},
		{"one id", 1, 1, 1},
		{"an exact multiple", 30, 10, 3},
		{"a short last block", 31, 10, 4},
		{"fewer than a block", 5, service.MaxBlockSize, 1},
		{"more than one answer of Generate", 3_000_000, service.MaxBlockSize, 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := serve(t, Config{}, nil)
			stream, err := r.ids.StreamServerSideIds(bounded(t), &idnodev1.StreamServerSideIdsRequest{
				Template: "Users/", Count: test.count, BlockSize: test.size,
			})
			if err != nil {
				t.Fatal(err)
			}
			last, blocks := int64(0), 0
			for {
				res, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				b := res.GetBlock()
				sameMessage(t, res, &idnodev1.StreamServerSideIdsResponse{NodeTag: "A", Block: &idnodev1.IdBlock{
					Prefix: "Users/", First: last + 1, Last: b.GetLast(), Width: 19, Suffix: "-A",
				}})
				last, blocks = b.GetLast(), blocks+1
			}
			if last != test.count || blocks != test.blocks {
				t.Errorf("%d ids in %d blocks, want %d in %d", last, blocks, test.count, test.blocks)
			}
		})
	}
}

func TestStreamServerSideIdsRefusals(t *testing.T) {
	r := serve(t, Config{}, nil)
	tests := []struct {
		req           *idnodev1.StreamServerSideIdsRequest
		reason, field string
	}{
		{&idnodev1.StreamServerSideIdsRequest{}, "INVALID_ID", "template"},
		{&idnodev1.StreamServerSideIdsRequest{Template: "users|"}, "INVALID_ID", "template"},
		{&idnodev1.StreamServerSideIdsRequest{Template: "users/5"}, "INVALID_ID", "template"},
		{&idnodev1.StreamServerSideIdsRequest{Template: "users/", Separator: "a"}, "INVALID_SEPARATOR", "separator"},
		{&idnodev1.StreamServerSideIdsRequest{Template: "users/", Database: "?"}, "INVALID_DATABASE", "database"},
		{&idnodev1.StreamServerSideIdsRequest{Template: "users/", Count: -1}, "INVALID_COUNT", "count"},
		{&idnodev1.StreamServerSideIdsRequest{Template: "users/", BlockSize: -1}, "INVALID_SIZE", "block_size"},
		{&idnodev1.StreamServerSideIdsRequest{Template: "users/", BlockSize: service.MaxBlockSize + 1}, "INVALID_SIZE", "block_size"},
	}
	for _, test := range tests {
		stream, err := r.ids.StreamServerSideIds(bounded(t), test.req)
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		wantStatus(t, err, codes.InvalidArgument, test.reason, test.field)
	}
	if r.etag != 0 {
		t.Errorf("refused streams took %d etags", r.etag)
	}
}

// TestStreamServerSideIdsEndless goes on until the caller cancels; gRPC's flow
// control bounds what is taken for a caller that does not read.
func TestStreamServerSideIdsEndless(t *testing.T) {
	r := serve(t, Config{}, nil)
	ctx, cancel := context.WithCancel(bounded(t))
	stream, err := r.ids.StreamServerSideIds(ctx, &idnodev1.StreamServerSideIdsRequest{Template: "u/", BlockSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for want := range int64(10_000) {
		res, err := stream.Recv()
		if err != nil || res.GetBlock().GetFirst() != want+1 {
			t.Fatalf("%v %v, want %d", res, err, want+1)
		}
	}
	cancel()
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Canceled {
		t.Error(err)
	}
}

// TestStreamServerSideIdsStop: a stream that never ends does not hold up the end
// of the node.
func TestStreamServerSideIdsStop(t *testing.T) {
	r := serve(t, Config{}, nil)
	stream, err := r.ids.StreamServerSideIds(bounded(t), &idnodev1.StreamServerSideIdsRequest{Template: "u/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := r.service.Drain(bounded(t)); err != nil {
		t.Error(err)
	}
	for err == nil {
		_, err = stream.Recv()
	}
	wantStatus(t, err, codes.Unavailable, "STOPPING", "")
}
