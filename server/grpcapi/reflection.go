package grpcapi

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
)

// inTurns registers the reflection service so that each of its answers takes a turn: an answer
// costs as much as a hundred cheap calls, and every caller may ask.
type inTurns struct {
	reflection.GRPCServer
	turn func(context.Context) (end func(), err error)
}

func (r inTurns) RegisterService(desc *grpc.ServiceDesc, server any) {
	own := *desc
	own.Streams = slices.Clone(desc.Streams)
	for i, s := range desc.Streams {
		own.Streams[i].Handler = func(srv any, stream grpc.ServerStream) error {
			turned := &turnedStream{ServerStream: stream, turn: r.turn, end: func() {}}
			defer func() { turned.end() }()
			return s.Handler(srv, turned)
		}
	}
	r.GRPCServer.RegisterService(&own, server)
}

// turnedStream has its turn from each message to the answer. It has none while it waits for
// its caller, to send or to read.
type turnedStream struct {
	grpc.ServerStream
	turn func(context.Context) (end func(), err error)
	end  func()
}

func (s *turnedStream) RecvMsg(m any) error {
	s.release()
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	end, err := s.turn(s.Context())
	if err != nil {
		return statusError(err)
	}
	s.end = end
	return nil
}

func (s *turnedStream) SendMsg(m any) error {
	s.release()
	return s.ServerStream.SendMsg(m)
}

func (s *turnedStream) release() {
	s.end()
	s.end = func() {}
}
