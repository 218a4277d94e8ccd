package grpcapi

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/server/service"
)

// answer makes one call of an Exchange. Its failure concerns this call alone, also a
// panic.
func (s *idsServer) answer(ctx context.Context, call *idnodev1.Call, start time.Time) (reply *idnodev1.Reply) {
	reply = &idnodev1.Reply{Correlation: call.GetCorrelation()}
	var method string
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = panicked(ctx, s.log.logger, p)
		}
		s.conclude(ctx, reply, method, start, err)
	}()
	method = methodOf(call)
	if call.GetTimeout() == nil {
		err = s.dispatch(ctx, call, reply)
		return reply
	}
	err = s.dispatchWithin(ctx, call, reply)
	return reply
}

// conclude records a call that ended; its error, if there is one, becomes the
// reply.
func (s *idsServer) conclude(ctx context.Context, reply *idnodev1.Reply, method string, start time.Time, err error) {
	s.log.done(ctx, method, start, err)
	if err != nil {
		reply.Reply = &idnodev1.Reply_Error{Error: errorMessage(err)}
	}
}

// dispatchWithin bounds a call by its own timeout.
func (s *idsServer) dispatchWithin(ctx context.Context, call *idnodev1.Call, reply *idnodev1.Reply) error {
	if call.GetTimeout().CheckValid() != nil || call.GetTimeout().AsDuration() <= 0 {
		return s.log.refuse(badRequest(service.ReasonInvalidTimeout, "timeout", "the timeout is not a time above zero"))
	}
	ctx, cancel := context.WithTimeout(ctx, call.GetTimeout().AsDuration())
	defer cancel()
	return s.dispatch(ctx, call, reply)
}

// dispatch makes a call by the method of the same name and puts its answer into
// reply, which counts only without an error.
func (s *idsServer) dispatch(ctx context.Context, call *idnodev1.Call, reply *idnodev1.Reply) error {
	switch c := call.GetCall().(type) {
	case *idnodev1.Call_Generate:
		res, err := s.Generate(ctx, c.Generate)
		reply.Reply = &idnodev1.Reply_Generate{Generate: res}
		return err
	case *idnodev1.Call_NextIdentity:
		res, err := s.NextIdentity(ctx, c.NextIdentity)
		reply.Reply = &idnodev1.Reply_NextIdentity{NextIdentity: res}
		return err
	case *idnodev1.Call_SeedIdentity:
		res, err := s.SeedIdentity(ctx, c.SeedIdentity)
		reply.Reply = &idnodev1.Reply_SeedIdentity{SeedIdentity: res}
		return err
	case *idnodev1.Call_NextRange:
		res, err := s.NextRange(ctx, c.NextRange)
		reply.Reply = &idnodev1.Reply_NextRange{NextRange: res}
		return err
	case *idnodev1.Call_ReturnRange:
		res, err := s.ReturnRange(ctx, c.ReturnRange)
		reply.Reply = &idnodev1.Reply_ReturnRange{ReturnRange: res}
		return err
	case *idnodev1.Call_Claim:
		res, err := s.Claim(ctx, c.Claim)
		reply.Reply = &idnodev1.Reply_Claim{Claim: res}
		return err
	case *idnodev1.Call_Release:
		res, err := s.Release(ctx, c.Release)
		reply.Reply = &idnodev1.Reply_Release{Release: res}
		return err
	default:
		return s.log.refuse(badRequest(service.ReasonInvalidRequest, "call", "the call is empty, or one that this node does not know"))
	}
}

// methodOf returns the name under which a call is logged: that of its method.
func methodOf(call *idnodev1.Call) string {
	switch call.GetCall().(type) {
	case *idnodev1.Call_Generate:
		return idnodev1.IdsService_Generate_FullMethodName
	case *idnodev1.Call_NextIdentity:
		return idnodev1.IdsService_NextIdentity_FullMethodName
	case *idnodev1.Call_SeedIdentity:
		return idnodev1.IdsService_SeedIdentity_FullMethodName
	case *idnodev1.Call_NextRange:
		return idnodev1.IdsService_NextRange_FullMethodName
	case *idnodev1.Call_ReturnRange:
		return idnodev1.IdsService_ReturnRange_FullMethodName
	case *idnodev1.Call_Claim:
		return idnodev1.IdsService_Claim_FullMethodName
	case *idnodev1.Call_Release:
		return idnodev1.IdsService_Release_FullMethodName
	default:
		return idnodev1.IdsService_Exchange_FullMethodName
	}
}

// errorMessage returns a status as the message that a reply carries.
func errorMessage(err error) *idnodev1.Error {
	st := status.Convert(err).Proto()
	return &idnodev1.Error{Code: st.GetCode(), Message: st.GetMessage(), Details: st.GetDetails()}
}

func badRequest(reason, field, message string) *service.Error {
	return &service.Error{Code: service.InvalidArgument, Reason: reason, Field: field, Message: message}
}
