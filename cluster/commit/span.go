package commit

import "context"

// StartSpan starts the span of a group, which operations of callers are part of, or of
// an entry, which groups are part of. callers are the contexts that they came with;
// the slice is used again after the call. nil starts no span.
type StartSpan func(callers []context.Context, operations int) Span

// Span is the hook for the trace span of one group or entry.
type Span interface {
	// Onto returns ctx with the span in it, for the next part that works on the group.
	Onto(ctx context.Context) context.Context
	// End is called once, with the error that the group or entry ended with. A
	// group may end without an error and be cut again, if no leader took it.
	End(err error)
}

// withSpan returns ctx with the span in it, if there is one.
func withSpan(ctx context.Context, span Span) context.Context {
	if span == nil {
		return ctx
	}
	return span.Onto(ctx)
}

// endSpan ends a span, if there is one.
func endSpan(span Span, err error) {
	if span != nil {
		span.End(err)
	}
}
