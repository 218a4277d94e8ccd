package service

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// keyProposer keeps the request key of the last proposal.
type keyProposer struct {
	Proposer
	key *raftlogv1.RequestKey
}

func (p *keyProposer) Propose(_ context.Context, operation []byte) ([]byte, error) {
	var op raftlogv1.Operation
	if err := proto.Unmarshal(operation, &op); err != nil {
		return nil, err
	}
	p.key = op.GetRequest()
	return nil, errors.New("seen")
}

// TestEveryFieldIsInTheFingerprint changes one field of a request after the other.
func TestEveryFieldIsInTheFingerprint(t *testing.T) {
	w := newWorld(t)
	seen := &keyProposer{}
	n := newNode(t, w, func(c *Config) { c.Proposer = seen })
	call := func(request proto.Message) *raftlogv1.RequestKey {
		seen.key = nil
		request = proto.Clone(request)
		reflect.ValueOf(request).Elem().FieldByName("RequestId").Set(reflect.ValueOf(&idnodev1.RequestId{Id: "r"}))
		method := map[string]string{
			"GenerateRequest": "Generate", "NextIdentityRequest": "NextIdentity", "SeedIdentityRequest": "SeedIdentity",
			"DeleteIdentityRequest": "DeleteIdentity", "NextRangeRequest": "NextRange", "ReturnRangeRequest": "ReturnRange",
			"SetHiLoRequest": "SetHiLo", "ClaimRequest": "Claim", "ReleaseRequest": "Release",
		}[string(request.ProtoReflect().Descriptor().Name())]
		reflect.ValueOf(n.Service).MethodByName(method).Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(request)})
		return seen.key
	}
	for _, request := range []proto.Message{
		&idnodev1.GenerateRequest{Template: "u|"},
		&idnodev1.GenerateRequest{Template: "u/x", Claim: true},
		&idnodev1.NextIdentityRequest{Name: "u"},
		&idnodev1.SeedIdentityRequest{Name: "u", Value: 3},
		&idnodev1.DeleteIdentityRequest{Name: "u"},
		&idnodev1.NextRangeRequest{Tag: "u", LastRangeAt: timestamppb.New(time.Unix(1000, 0))},
		&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 9, Last: 3, Token: []byte("12345678")},
		&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 9, Last: 3, WithoutToken: true},
		&idnodev1.SetHiLoRequest{Tag: "u", Max: 7, Expected: 3},
		&idnodev1.ClaimRequest{Id: "u/1"},
		&idnodev1.ReleaseRequest{Id: "u/1"},
	} {
		base := call(request)
		if base == nil {
			t.Fatalf("%T is not proposed", request)
		}
		fields := reflect.TypeOf(request).Elem()
		for i := range fields.NumField() {
			name := fields.Field(i).Name
			if name == "RequestId" || !fields.Field(i).IsExported() {
				continue
			}
			other := proto.Clone(request)
			alter(t, reflect.ValueOf(other).Elem().Field(i))
			key := call(other)
			switch {
			case key == nil: // It is no request that can be made.
			case string(key.GetKey()) == string(base.GetKey()) && key.GetFingerprint() == base.GetFingerprint():
				t.Errorf("%T: two that differ in %s have one fingerprint", request, name)
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
	default:
		t.Fatalf("a field of type %T", v)
	}
}
