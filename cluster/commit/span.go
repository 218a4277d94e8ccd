package commit

import "context"

// StartSpan starts the span of a group of operations, or of an entry of groups. callers are
// their contexts; the slice is reused after the call. A nil Span means that there is no
// span.
type StartSpan func(callers []context.Context, operations int) Span

// Span is the hook for the trace span of one group or entry.
type Span interface {
	// Onto returns ctx with the span in it, for the next part that works on the group.
	Onto(ctx context.Context) context.Context
	// End is called once, with the error of the group or entry. The span of a group whose
	// operations were put back into the queue may end without an error.
	End(err error)
}

// withSpan returns ctx with the span in it, if there is one.
func withSpan(ctx context.Context, span Span) context.Context {
	if span == nil {
		return ctx
	}
	return span.Onto(ctx)
}

func endSpan(span Span, err error) {
	if span != nil {
		span.End(err)
	}
}
