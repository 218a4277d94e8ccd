package grpcapi

import (
	"context"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/server/apierror"
)

// keptServices keeps what is registered.
type keptServices struct {
	*grpc.Server
	streams map[string]grpc.StreamHandler
	server  any
}

func (k *keptServices) RegisterService(desc *grpc.ServiceDesc, server any) {
	for _, s := range desc.Streams {
		k.streams["/"+desc.ServiceName+"/"+s.StreamName] = s.Handler
	}
	if desc.ServiceName == reflectionv1.ServerReflection_ServiceDesc.ServiceName {
		k.server = server
	}
}

// scriptedStream sends some requests for reflection, and writes down what happens.
type scriptedStream struct {
	grpc.ServerStream
	ctx    context.Context
	left   int
	events *[]string
}

func (s *scriptedStream) Context() context.Context { return s.ctx }

func (s *scriptedStream) RecvMsg(m any) error {
	*s.events = append(*s.events, "receive")
	if s.left--; s.left < 0 {
		return io.EOF
	}
	proto.Merge(m.(proto.Message), &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	return nil
}

func (s *scriptedStream) SendMsg(any) error {
	*s.events = append(*s.events, "send")
	return nil
}

// TestReflectionTakesTurns for each answer, and has none while it waits for its caller.
func TestReflectionTakesTurns(t *testing.T) {
	var events []string
	var refused error
	turn := func(context.Context) (func(), error) {
		events = append(events, "begin")
		return func() { events = append(events, "end") }, refused
	}
	kept := &keptServices{Server: grpc.NewServer(), streams: map[string]grpc.StreamHandler{}}
	defer kept.Stop()
	reflection.Register(inTurns{kept, turn})
	handler := kept.streams[reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName]
	if len(kept.streams) != 2 || handler == nil {
		t.Fatalf("%d streams", len(kept.streams))
	}
	if err := handler(kept.server, &scriptedStream{ctx: t.Context(), left: 2, events: &events}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"receive", "begin", "end", "send", "receive", "begin", "end", "send", "receive"}; !slices.Equal(events, want) {
		t.Errorf("%v, want %v", events, want)
	}
	refused = apierror.ErrOverloaded
	if err := handler(kept.server, &scriptedStream{ctx: t.Context(), left: 1, events: &events}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("without a turn: %v", err)
	}
}
