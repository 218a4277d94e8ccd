package service

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

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
	call := func(request any) *raftlogv1.RequestKey {
		seen.key = nil
		v := reflect.New(reflect.TypeOf(request)).Elem()
		v.Set(reflect.ValueOf(request))
		v.FieldByName("RequestID").Set(reflect.ValueOf(&RequestID{ID: "r"}))
		method := map[string]string{
			"GenerateRequest": "Generate", "NextIdentityRequest": "NextIdentity", "SeedIdentityRequest": "SeedIdentity",
			"DeleteIdentityRequest": "DeleteIdentity", "NextRangeRequest": "NextRange", "ReturnRangeRequest": "ReturnRange",
			"SetHiLoRequest": "SetHiLo", "ClaimRequest": "Claim", "ReleaseRequest": "Release",
		}[v.Type().Name()]
		reflect.ValueOf(n.Service).MethodByName(method).Call([]reflect.Value{reflect.ValueOf(t.Context()), v})
		return seen.key
	}
	for _, request := range []any{
		GenerateRequest{Template: "u|"},
		GenerateRequest{Template: "u/x", Claim: true},
		NextIdentityRequest{Name: "u"},
		SeedIdentityRequest{Name: "u", Value: 3},
		DeleteIdentityRequest{Name: "u"},
		NextRangeRequest{Tag: "u", HasLastRange: true, LastRangeAt: time.Unix(1000, 0)},
		ReturnRangeRequest{Tag: "u", Low: 1, High: 9, Last: 3, Token: []byte("12345678")},
		ReturnRangeRequest{Tag: "u", Low: 1, High: 9, Last: 3, WithoutToken: true},
		SetHiLoRequest{Tag: "u", Max: 7, Expected: 3},
		ClaimRequest{ID: "u/1"},
		ReleaseRequest{ID: "u/1"},
	} {
		base := call(request)
		if base == nil {
			t.Fatalf("%T is not proposed", request)
		}
		fields := reflect.TypeOf(request)
		for i := range fields.NumField() {
			name := fields.Field(i).Name
			if name == "RequestID" {
				continue
			}
			other := reflect.New(fields).Elem()
			other.Set(reflect.ValueOf(request))
			alter(t, other.Field(i))
			key := call(other.Interface())
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
	case *time.Time:
		*v = v.Add(time.Nanosecond)
	default:
		t.Fatalf("a field of type %T", v)
	}
}
