package grpcapi

import (
	"errors"
	"io"

	"google.golang.org/grpc"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// StreamServerSideIds sends blocks as fast as the caller reads them: a block is taken only when
// the previous one was handed to gRPC.
func (s *idsServer) StreamServerSideIds(
	req *idnodev1.StreamServerSideIdsRequest, stream grpc.ServerStreamingServer[idnodev1.StreamServerSideIdsResponse],
) error {
	blocks, err := s.ServerSideStream(stream.Context(), req)
	if err != nil {
		return statusError(err)
	}
	for {
		block, err := blocks.Next(stream.Context())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return statusError(err)
		}
		err = stream.Send(&idnodev1.StreamServerSideIdsResponse{Block: block, NodeTag: blocks.NodeTag()})
		if err != nil {
			return err
		}
	}
}
