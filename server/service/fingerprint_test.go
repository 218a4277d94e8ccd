package service

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
)

// oneTime is that of a test's world.
var oneTime = time.Unix(1_700_000_000, 0)

// withRequestID are requests of each method that has a request id, in a world that prepare makes.
var withRequestID = []proto.Message{
	&idnodev1.GenerateRequest{Template: "u|"},
	&idnodev1.GenerateRequest{Template: "u/x", Claim: true},
	&idnodev1.NextIdentityRequest{Name: "u"},
	&idnodev1.SeedIdentityRequest{Name: "u", Value: proto.Int64(3)},
	&idnodev1.DeleteIdentityRequest{Name: "d"},
	&idnodev1.NextRangeRequest{Tag: "u", LastRangeAt: timestamppb.New(oneTime)},
	&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 9, Last: proto.Int64(3), Token: aToken},
	&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 9, Last: proto.Int64(3), WithoutToken: true},
	&idnodev1.SetHiLoRequest{Tag: "u", Max: 7},
	&idnodev1.ClaimRequest{Id: "u/y"},
	&idnodev1.ReleaseRequest{Id: "c/x"},
	&idnodev1.AcquireWorkerRequest{Pool: "p", Holder: "h", Now: timestamppb.New(oneTime)},
}

// requester makes calls with one request id on one node.
type requester struct {
	t *testing.T
	n node
	// methods are the methods of the API whose request has a request id, by the request's name.
	methods map[protoreflect.Name]string
}

func newRequester(t *testing.T) requester {
	t.Helper()
	c := requester{t: t, n: newNode(t, newWorld(t), nil), methods: map[protoreflect.Name]string{}}
	protoregistry.GlobalFiles.RangeFilesByPackage("idnode.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				if m := methods.Get(j); m.Input().Fields().ByName("request_id") != nil {
					c.methods[m.Input().Name()] = string(m.Name())
				}
			}
		}
		return true
	})
	_, seeded := c.n.SeedIdentity(as("ops"), &idnodev1.SeedIdentityRequest{Name: "d", Value: proto.Int64(3)})
	_, claimed := c.n.Claim(as("ops"), &idnodev1.ClaimRequest{Id: "c/x"})
	_, defined := c.n.DefinePool(as("ops"), &idnodev1.DefinePoolRequest{Name: "p"})
	if err := errors.Join(seeded, claimed, defined); err != nil {
		t.Fatal(err)
	}
	return c
}

// call returns the log index of the answer.
func (c requester) call(principal string, request proto.Message) (logIndex uint64, _ error) {
	request = proto.Clone(request)
	reflect.ValueOf(request).Elem().FieldByName("RequestId").Set(reflect.ValueOf(&idnodev1.RequestId{Id: "r"}))
	method := reflect.ValueOf(c.n.Service).MethodByName(c.methods[request.ProtoReflect().Descriptor().Name()])
	answer := method.Call([]reflect.Value{reflect.ValueOf(as(principal)), reflect.ValueOf(request)})
	if err, failed := answer[1].Interface().(error); failed {
		return 0, err
	}
	return answer[0].Interface().(interface{ GetLogIndex() uint64 }).GetLogIndex(), nil
}

// TestEveryCallOwnsItsRequestID: in each method of the API that has a request id, the same one of
// another principal is another. The answer is another one, or a refusal that would come without a
// request id too.
func TestEveryCallOwnsItsRequestID(t *testing.T) {
	untested := newRequester(t).methods
	for _, request := range withRequestID {
		c := newRequester(t)
		delete(untested, request.ProtoReflect().Descriptor().Name())
		first, err := c.call("one", request)
		if again, errAgain := c.call("one", request); err != nil || errAgain != nil || again != first {
			t.Errorf("%T: %d, %v; again %d, %v", request, first, err, again, errAgain)
		}
		other, err := c.call("two", request)
		refused, isRefused := errors.AsType[*apierror.Error](err)
		if other == first || isRefused && refused.Field == "request_id" {
			t.Errorf("%T: another principal gets %d, %v, and the first one had %d", request, other, err, first)
		}
	}
	if len(untested) > 0 {
		t.Errorf("without a request in this test: %v", untested)
	}
}

// TestEveryFieldIsInTheFingerprint: a request that differs in any field cannot have the request id of
// another. In another database it is another request id.
func TestEveryFieldIsInTheFingerprint(t *testing.T) {
	for _, request := range withRequestID {
		c := newRequester(t)
		first, err := c.call("one", request)
		if err != nil {
			t.Fatal(err)
		}
		fields := reflect.TypeOf(request).Elem()
		for i := range fields.NumField() {
			name := fields.Field(i).Name
			if name == "RequestId" || !fields.Field(i).IsExported() {
				continue
			}
			other := proto.Clone(request)
			alter(t, reflect.ValueOf(other).Elem().Field(i))
			index, err := c.call("one", other)
			refused, _ := errors.AsType[*apierror.Error](err)
			switch {
			case refused != nil && (refused.Reason == apierror.ReasonRequestIDReused || refused.Code == apierror.CodeInvalidArgument):
			case name == "Database" && index != first:
			case err == nil && index == 0: // It takes nothing.
			default:
				t.Errorf("%T with another %s: %d, %v, and the first one had %d", request, name, index, err, first)
			}
		}
	}
}

// alter gives a field another value.
func alter(t *testing.T, field reflect.Value) {
	t.Helper()
	switch v := field.Addr().Interface().(type) {
	case *string:
		if *v += "2"; *v == "2" {
			*v = "+"
		}
	case *int64:
		*v++
	case *bool:
		*v = !*v
	case **int64:
		*v = proto.Int64(1)
	case *[]byte:
		*v = []byte("87654321")
	case **timestamppb.Timestamp:
		*v = timestamppb.New((*v).AsTime().Add(time.Nanosecond))
	case **durationpb.Duration:
		*v = durationpb.New(time.Minute)
	default:
		t.Fatalf("a field of type %T", v)
	}
}
