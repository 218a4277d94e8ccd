package main

import (
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestEffectOf: only what idnode itself says for certain counts as not done.
func TestEffectOf(t *testing.T) {
	cases := []struct {
		code   codes.Code
		reason string
		want   effect
	}{
		{codes.Unavailable, "NO_QUORUM", effectNone},
		{codes.Unavailable, "OUTCOME_UNKNOWN", effectUnknown},
		{codes.Aborted, "OUTCOME_UNKNOWN", effectUnknown},
		{codes.Aborted, "CONCURRENCY", effectRefused},
		{codes.Unavailable, "", effectUnknown},
		{codes.DeadlineExceeded, "", effectUnknown},
		{codes.Canceled, "", effectUnknown},
		{codes.Internal, "INTERNAL", effectUnknown},
		{codes.Internal, "", effectUnknown},
		{codes.Unknown, "", effectUnknown},
		{codes.ResourceExhausted, "", effectUnknown},
		{codes.ResourceExhausted, "OVERLOADED", effectRefused},
		{codes.InvalidArgument, "INVALID_NAME", effectRefused},
		{codes.Unimplemented, "", effectNone},
	}
	for _, c := range cases {
		s := status.New(c.code, "why")
		if c.reason != "" {
			var err error
			if s, err = s.WithDetails(&errdetails.ErrorInfo{Domain: errorDomain, Reason: c.reason}); err != nil {
				t.Fatal(err)
			}
		}
		if got := effectOf(s.Err()); got != c.want {
			t.Errorf("%v %q has effect %d, want %d", c.code, c.reason, got, c.want)
		}
	}
}
