package grpcapi

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/service"
)

// services are the use cases themselves, and the streams beside them. Because of the
// Unsafe servers a method that is missing is an error of the compiler.
type services struct {
	idnodev1.UnsafeIdsServiceServer
	idnodev1.UnsafeSeriesServiceServer
	idnodev1.UnsafeSnowflakeServiceServer
	idnodev1.UnsafeClusterServiceServer
	idnodev1.UnsafeAdminServiceServer
	*service.Service
	// log and exchanges are for calls of streams, which the server's interceptors do not see.
	log       *requestLog
	exchanges *exchanges
	startSpan StartSpan
}

// StreamServerSideIds sends blocks as fast as the caller reads them: a block is taken only when
// the previous one was handed to gRPC.
func (s *services) StreamServerSideIds(
	req *idnodev1.StreamServerSideIdsRequest, stream grpc.ServerStreamingServer[idnodev1.StreamServerSideIdsResponse],
) error {
	return statusError(s.Service.StreamServerSideIds(stream.Context(), req, stream.Send))
}

// Backup sends a backup file in pieces.
func (s *services) Backup(req *idnodev1.BackupRequest, stream grpc.ServerStreamingServer[idnodev1.BackupResponse]) error {
	return statusError(s.Service.Backup(stream.Context(), req.GetConsistency(), pieces{stream}))
}

// pieces sends what is written to it, cut into messages of pieceBytes at most.
type pieces struct {
	stream grpc.ServerStreamingServer[idnodev1.BackupResponse]
}

const (
	pieceBytes = 64 << 10
	// pieceTime bounds the time in which the reader of a backup must take a piece. A reader
	// that stops would keep others from their backups.
	pieceTime = 30 * time.Second
)

var errNotRead = errors.New("the reader of the backup took no piece for half a minute")

func (p pieces) Write(b []byte) (written int, err error) {
	for piece := range slices.Chunk(b, pieceBytes) {
		if err := p.send(piece); err != nil {
			return written, err
		}
		written += len(piece)
	}
	return written, nil
}

// send sends a message. The stream may keep what it sends. After an error the handler ends,
// which ends the stream and its unsent messages.
func (p pieces) send(b []byte) error {
	sent, piece := make(chan error, 1), &idnodev1.BackupResponse{Data: bytes.Clone(b)}
	go func() { sent <- p.stream.Send(piece) }()
	timer := time.NewTimer(pieceTime)
	defer timer.Stop()
	select {
	case err := <-sent:
		return err
	case <-timer.C:
		return errNotRead
	}
}
