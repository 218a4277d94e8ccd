package grpcapi

import (
	"context"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/exactproto"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/calllog"
	"github.com/idnode/idnode/server/service"
)

// answer makes one call of an Exchange. Its failure, even a panic, concerns this call alone.
func (s *services) answer(ctx context.Context, call *idnodev1.Call, start time.Time) (reply *idnodev1.Reply) {
	reply = &idnodev1.Reply{Correlation: call.GetCorrelation()}
	method, field := methodOf(call)
	ctx, end := s.span(ctx, method.name, call)
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = calllog.Panicked(ctx, s.log.logger, p)
		}
		end(s.conclude(ctx, reply, method.name, start, err))
	}()
	err = s.make(ctx, call, method, field, reply)
	return reply
}

// conclude records a call that ended. Its error becomes the reply, and is returned as a status.
func (s *services) conclude(ctx context.Context, reply *idnodev1.Reply, method string, start time.Time, err error) error {
	err = statusError(err)
	s.log.done(ctx, method, start, err)
	if err != nil {
		reply.Reply = &idnodev1.Reply_Error{Error: errorMessage(err)}
	}
	return err
}

// StartSpan begins the span of a call of a method, by its full name, as a child of the span that
// traceparent names, and returns the call's context. end ends the span; its error is a status.
type StartSpan func(ctx context.Context, method, traceparent string) (called context.Context, end func(error))

func (s *services) span(ctx context.Context, method string, call *idnodev1.Call) (called context.Context, end func(error)) {
	if s.startSpan == nil || call.GetTraceparent() == "" {
		return ctx, func(error) {}
	}
	return s.startSpan(ctx, method, call.GetTraceparent())
}

type carried struct {
	name string
	make func(context.Context, *service.Service, proto.Message) (proto.Message, error)
}

func carry[Q, R proto.Message](name string, do func(*service.Service, context.Context, Q) (R, error)) carried {
	return carried{name, func(ctx context.Context, s *service.Service, request proto.Message) (proto.Message, error) {
		return do(s, ctx, request.(Q))
	}}
}

var (
	callOneof   = (*idnodev1.Call)(nil).ProtoReflect().Descriptor().Oneofs().ByName("call")
	replyFields = (*idnodev1.Reply)(nil).ProtoReflect().Descriptor().Fields()
)

// carriedMethods are the methods that an Exchange carries, by the field of the request, whose name
// is that of the field of the answer.
var carriedMethods = map[protoreflect.Name]carried{
	"generate":      carry(idnodev1.IdsService_Generate_FullMethodName, (*service.Service).Generate),
	"next_identity": carry(idnodev1.IdsService_NextIdentity_FullMethodName, (*service.Service).NextIdentity),
	"seed_identity": carry(idnodev1.IdsService_SeedIdentity_FullMethodName, (*service.Service).SeedIdentity),
	"next_range":    carry(idnodev1.IdsService_NextRange_FullMethodName, (*service.Service).NextRange),
	"return_range":  carry(idnodev1.IdsService_ReturnRange_FullMethodName, (*service.Service).ReturnRange),
	"claim":         carry(idnodev1.IdsService_Claim_FullMethodName, (*service.Service).Claim),
	"release":       carry(idnodev1.IdsService_Release_FullMethodName, (*service.Service).Release),
}

// methodOf returns the method and the field of a call. That of a call that is empty, or not known
// here, has the name of Exchange.
func methodOf(call *idnodev1.Call) (carried, protoreflect.FieldDescriptor) {
	if field := call.ProtoReflect().WhichOneof(callOneof); field != nil {
		if method, known := carriedMethods[field.Name()]; known {
			return method, field
		}
	}
	return carried{name: idnodev1.IdsService_Exchange_FullMethodName}, nil
}

// make makes a call, within its own timeout if it has one, and puts its answer into reply.
func (s *services) make(
	ctx context.Context, call *idnodev1.Call, method carried, field protoreflect.FieldDescriptor, reply *idnodev1.Reply,
) error {
	var request proto.Message
	if field != nil {
		request = call.ProtoReflect().Get(field).Message().Interface()
	}
	if err := checkCall(call, request); err != nil {
		return s.log.refuse(unknownField(err))
	}
	if timeout := call.GetTimeout(); timeout != nil {
		if timeout.CheckValid() != nil || timeout.AsDuration() <= 0 {
			return s.log.refuse(badRequest(apierror.ReasonInvalidTimeout, "timeout", "the timeout is not a time above zero"))
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout.AsDuration())
		defer cancel()
	}
	if field == nil {
		return s.log.refuse(badRequest(apierror.ReasonInvalidRequest, "call", "the call is empty, or one that this node does not know"))
	}
	answer, err := method.make(ctx, s.Service, request)
	if err == nil {
		reply.ProtoReflect().Set(replyFields.ByName(field.Name()), protoreflect.ValueOfMessage(answer.ProtoReflect()))
	}
	return err
}

// checkCall is exactproto.Check of a call with this request, or with none. It asks for the other kinds of request
// not one by one, which would take longer than all the rest of the check.
func checkCall(call *idnodev1.Call, request proto.Message) error {
	if request == nil || call.GetTimeout() != nil || len(call.ProtoReflect().GetUnknown()) > 0 {
		return exactproto.Check(call)
	}
	return exactproto.Check(request)
}

func errorMessage(err error) *idnodev1.Error {
	st := status.Convert(err).Proto()
	return &idnodev1.Error{Code: st.GetCode(), Message: st.GetMessage(), Details: st.GetDetails()}
}

func badRequest(reason, field, message string) *apierror.Error {
	return &apierror.Error{Code: apierror.CodeInvalidArgument, Reason: reason, Field: field, Message: message}
}
