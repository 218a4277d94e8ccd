package client

import (
	"context"
	"time"

	"google.golang.org/grpc/metadata"
)

// Event is something that a Client did for its calls; see Config.Observe.
type Event struct {
	Kind EventKind
	// Node is the address of a node; empty if there is none.
	Node string
	// Attempt counts the tries of a call, from 1.
	Attempt int
	// Duration is the time that it took.
	Duration time.Duration
	// Err is why it failed; nil if it did not.
	Err error
}

// EventKind is the kind of an Event, and says which fields it has.
type EventKind string

// The kinds of events.
const (
	// EventTry: a try of a call ended. It has all fields. Callers that share a call share its
	// tries; a HiLo id from a range at hand has none.
	EventTry EventKind = "try"
	// EventLook: a look for the leader ended. It has a Duration, and the leader's Node if one
	// was found.
	EventLook EventKind = "look"
	// EventLeader: calls now go to another leader, at Node.
	EventLeader EventKind = "leader"
	// EventGap: unused numbers of a HiLo range came back after another client had got a range
	// of the tag. They are a gap. It has no further field.
	EventGap EventKind = "gap"
)

// tell reports an event to the application. The caller holds no lock.
func (c *Config) tell(e Event) {
	if c.Observe != nil {
		c.Observe(e)
	}
}

// sharedTrace is the key under which the context of a shared call has its traceparent.
type sharedTrace struct{}

// traceparent returns the span of a call's caller; "" if there is none.
//
// The caller's function and not OpenTelemetry's instrumentation of gRPC finds it: that knows the
// Exchange stream, which outlives its calls, but not the calls that the stream carries.
func (c Config) traceparent(ctx context.Context) string {
	if c.TraceParent == nil {
		return ""
	}
	if shared, ok := ctx.Value(sharedTrace{}).(string); ok {
		return shared
	}
	return c.TraceParent(ctx)
}

// traced returns the context of a unary call, which names the caller's span in its metadata.
// Instrumentation in Config.DialOptions replaces it by a span of its own.
func (c Config) traced(ctx context.Context) context.Context {
	if parent := c.traceparent(ctx); parent != "" {
		return metadata.AppendToOutgoingContext(ctx, "traceparent", parent)
	}
	return ctx
}
