package grpcapi

import (
	"errors"
	"io"

	"google.golang.org/grpc"
)

// noGzip refuses gzip, which the exporter of traces registers for the whole program, and so for
// this server. gRPC refuses every other compression. A message is decompressed before its sender
// could be checked, and a few bytes may expand to the largest message.
type noGzip struct{}

var errCompressed = errors.New("compressed messages are refused")

// Do implements grpc.Decompressor, without a look at the message.
func (noGzip) Do(io.Reader) ([]byte, error) { return nil, errCompressed }

func (noGzip) Type() string { return "gzip" }

// refuseCompressed is the only option that goes before what is registered, though gRPC
// would have decompressors registered instead.
func refuseCompressed() grpc.ServerOption {
	//lint:ignore SA1019 what came in its place is for the whole program, exporters too
	return grpc.RPCDecompressor(noGzip{})
}
