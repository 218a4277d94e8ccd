package grpcapi

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/server/apierror"
)

// ErrorDomain is the domain of every google.rpc.ErrorInfo of idnode.
const ErrorDomain = "idnode"

// statusError returns err as a gRPC status: with an ErrorInfo, a BadRequest if a field is
// invalid, and a RetryInfo if the same call may be tried again. A status is returned unchanged.
// Any other error that is not an *apierror.Error becomes INTERNAL, without its text.
func statusError(err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		if _, is := status.FromError(err); is {
			return err
		}
		e = apierror.Of(err)
	}
	st := status.New(e.Code, e.Message)
	if detailed, err := st.WithDetails(details(e)...); err == nil {
		st = detailed
	}
	return st.Err()
}

func details(e *apierror.Error) []protoadapt.MessageV1 {
	list := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: e.Reason, Domain: ErrorDomain}}
	if e.Field != "" {
		list = append(list, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: e.Field, Description: e.Message, Reason: e.Reason},
		}})
	}
	if e.Number != nil {
		list = append(list, protoadapt.MessageV1Of(e.Number))
	}
	if e.RetryAfter > 0 {
		list = append(list, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	return list
}
