package grpcapi

import (
	"context"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/server/service"
)

// answer makes one call of an Exchange. Its failure, even a panic, concerns this call alone.
func (s *idsServer) answer(ctx context.Context, call *idnodev1.Call, start time.Time) (reply *idnodev1.Reply) {
	reply = &idnodev1.Reply{Correlation: call.GetCorrelation()}
	method := methodOf(call)
	ctx, end := s.span(ctx, method.name, call)
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = panicked(ctx, s.log.logger, p)
		}
		end(s.conclude(ctx, reply, method.name, start, err))
	}()
	if call.GetTimeout() == nil {
		err = method.make(ctx, s, call, reply)
		return reply
	}
	err = s.makeWithin(ctx, method, call, reply)
	return reply
}

// conclude records a call that ended; its error, if any, becomes the reply, and is returned as
// a status.
func (s *idsServer) conclude(ctx context.Context, reply *idnodev1.Reply, method string, start time.Time, err error) error {
	err = statusError(err)
	s.log.done(ctx, method, start, err)
	if err != nil {
		reply.Reply = &idnodev1.Reply_Error{Error: errorMessage(err)}
	}
	return err
}

// StartSpan begins the span of a call of a method, by its full name, as a child of the span
// that traceparent names, and returns the call's context. end ends the span; its error is a
// status.
type StartSpan func(ctx context.Context, method, traceparent string) (called context.Context, end func(error))

// span begins the span of a call that names its caller's.
func (s *idsServer) span(ctx context.Context, method string, call *idnodev1.Call) (called context.Context, end func(error)) {
	if s.startSpan == nil || call.GetTraceparent() == "" {
		return ctx, func(error) {}
	}
	return s.startSpan(ctx, method, call.GetTraceparent())
}

// makeWithin bounds a call by its own timeout.
func (s *idsServer) makeWithin(ctx context.Context, method carried, call *idnodev1.Call, reply *idnodev1.Reply) error {
	if call.GetTimeout().CheckValid() != nil || call.GetTimeout().AsDuration() <= 0 {
		return s.log.refuse(badRequest(service.ReasonInvalidTimeout, "timeout", "the timeout is not a time above zero"))
	}
	ctx, cancel := context.WithTimeout(ctx, call.GetTimeout().AsDuration())
	defer cancel()
	return method.make(ctx, s, call, reply)
}

// carried is a method whose calls an Exchange carries.
type carried struct {
	name string
	// make makes a call and puts its answer into reply, which counts only without an error.
	make func(ctx context.Context, s *idsServer, call *idnodev1.Call, reply *idnodev1.Reply) error
}

// carry returns a method, of which the getter of its requests, the use case, and what puts
// an answer into a reply are given.
func carry[Q, R any](
	name string, request func(*idnodev1.Call) Q, do func(*service.Service, context.Context, Q) (R, error), put func(*idnodev1.Reply, R),
) carried {
	return carried{name, func(ctx context.Context, s *idsServer, call *idnodev1.Call, reply *idnodev1.Reply) error {
		answer, err := do(s.Service, ctx, request(call))
		put(reply, answer)
		return err
	}}
}

// callOneof is the oneof of a Call's request.
var callOneof = (*idnodev1.Call)(nil).ProtoReflect().Descriptor().Oneofs().ByName("call")

// carriedMethods are the methods that an Exchange carries, by the field of the request.
var carriedMethods = map[protoreflect.Name]carried{
	"generate": carry(idnodev1.IdsService_Generate_FullMethodName, (*idnodev1.Call).GetGenerate, (*service.Service).Generate,
		func(r *idnodev1.Reply, a *idnodev1.GenerateResponse) { r.Reply = &idnodev1.Reply_Generate{Generate: a} }),
	"next_identity": carry(idnodev1.IdsService_NextIdentity_FullMethodName, (*idnodev1.Call).GetNextIdentity, (*service.Service).NextIdentity,
		func(r *idnodev1.Reply, a *idnodev1.NextIdentityResponse) {
			r.Reply = &idnodev1.Reply_NextIdentity{NextIdentity: a}
		}),
	"seed_identity": carry(idnodev1.IdsService_SeedIdentity_FullMethodName, (*idnodev1.Call).GetSeedIdentity, (*service.Service).SeedIdentity,
		func(r *idnodev1.Reply, a *idnodev1.SeedIdentityResponse) {
			r.Reply = &idnodev1.Reply_SeedIdentity{SeedIdentity: a}
		}),
	"next_range": carry(idnodev1.IdsService_NextRange_FullMethodName, (*idnodev1.Call).GetNextRange, (*service.Service).NextRange,
		func(r *idnodev1.Reply, a *idnodev1.NextRangeResponse) {
			r.Reply = &idnodev1.Reply_NextRange{NextRange: a}
		}),
	"return_range": carry(idnodev1.IdsService_ReturnRange_FullMethodName, (*idnodev1.Call).GetReturnRange, (*service.Service).ReturnRange,
		func(r *idnodev1.Reply, a *idnodev1.ReturnRangeResponse) {
			r.Reply = &idnodev1.Reply_ReturnRange{ReturnRange: a}
		}),
	"claim": carry(idnodev1.IdsService_Claim_FullMethodName, (*idnodev1.Call).GetClaim, (*service.Service).Claim,
		func(r *idnodev1.Reply, a *idnodev1.ClaimResponse) { r.Reply = &idnodev1.Reply_Claim{Claim: a} }),
	"release": carry(idnodev1.IdsService_Release_FullMethodName, (*idnodev1.Call).GetRelease, (*service.Service).Release,
		func(r *idnodev1.Reply, a *idnodev1.ReleaseResponse) { r.Reply = &idnodev1.Reply_Release{Release: a} }),
}

// methodOf returns the method of a call. That of a call that is empty, or not known here, has
// the name of Exchange.
func methodOf(call *idnodev1.Call) carried {
	if field := call.ProtoReflect().WhichOneof(callOneof); field != nil {
		if method, known := carriedMethods[field.Name()]; known {
			return method
		}
	}
	return carried{idnodev1.IdsService_Exchange_FullMethodName, refuseUnknown}
}

func refuseUnknown(_ context.Context, s *idsServer, _ *idnodev1.Call, _ *idnodev1.Reply) error {
	return s.log.refuse(badRequest(service.ReasonInvalidRequest, "call", "the call is empty, or one that this node does not know"))
}

// errorMessage returns a status as the message that a reply carries.
func errorMessage(err error) *idnodev1.Error {
	st := status.Convert(err).Proto()
	return &idnodev1.Error{Code: st.GetCode(), Message: st.GetMessage(), Details: st.GetDetails()}
}

func badRequest(reason, field, message string) *service.Error {
	return &service.Error{Code: service.InvalidArgument, Reason: reason, Field: field, Message: message}
}
