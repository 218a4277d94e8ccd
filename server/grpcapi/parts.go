package grpcapi

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/idnode/idnode/internal/wire"
	"github.com/idnode/idnode/server/apierror"
)

const (
	// partBytes is what a part of a request holds, decoded and translated, beside its text.
	partBytes = 256
	// maxParts is above what an operation of the log has room for.
	maxParts = 1 << 15
)

var errParts = &apierror.Error{
	Code: apierror.CodeResourceExhausted, Reason: apierror.ReasonQuota,
	Message: fmt.Sprintf("the request has more than %d parts", maxParts),
}

func requestOf(desc *grpc.ServiceDesc, method string) protoreflect.MessageDescriptor {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(desc.ServiceName).Append(protoreflect.Name(method)))
	if err != nil {
		panic(err) // The generated code registers it.
	}
	return found.(protoreflect.MethodDescriptor).Input()
}

// repeats says whether a message has parts that can come any number of times.
func repeats(message protoreflect.MessageDescriptor) bool {
	for i := range message.Fields().Len() {
		f := message.Fields().Get(i)
		if f.Cardinality() == protoreflect.Repeated || f.Message() != nil && repeats(f.Message()) {
			return true
		}
	}
	return false
}

// partsOf counts the parts of an encoded message, and theirs, until one cannot be decoded.
func partsOf(encoded []byte, message protoreflect.MessageDescriptor) (parts int64) {
	for num, v := range wire.Fields(encoded) {
		if num == 0 {
			break
		}
		parts++
		if f := message.Fields().ByNumber(num); f != nil && f.Message() != nil && v.Type == protowire.BytesType {
			parts += partsOf(v.Bytes, f.Message())
		}
	}
	return parts
}

// inParts returns the handler of a method whose requests repeat parts. A part may take two
// bytes of a message, and a hundred times as much when it is decoded, which gRPC does before
// an interceptor could count it. So the parts are counted, and room is taken for them, before
// the request is decoded.
func (l *requestLog) inParts(method string, request protoreflect.MessageDescriptor, handler grpc.MethodHandler) grpc.MethodHandler {
	return func(server any, ctx context.Context, decode func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
		var message received
		if err := decode(&message); err != nil {
			return nil, err
		}
		whole := message.whole()
		defer whole.Free()
		parts := partsOf(whole.ReadOnlyData(), request)
		if parts > maxParts {
			return nil, l.refuse(errParts)
		}
		to := connectionOf(ctx)
		if !holdFor(method, to, parts*partBytes) {
			return nil, l.refuse(apierror.ErrOverloaded)
		}
		defer to.Give(parts * partBytes)
		return handler(server, ctx, func(m any) error {
			if err := proto.Unmarshal(whole.ReadOnlyData(), m.(proto.Message)); err != nil {
				return malformed(err)
			}
			return nil
		}, around)
	}
}
