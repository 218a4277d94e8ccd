package commit

import "context"

// Follow begins to follow a group, which operations of callers are part of, or an
// entry, which groups are part of. callers are the contexts that they came with;
// the slice is used again after the call. nil follows nothing.
type Follow func(callers []context.Context, operations int) Trail

// Trail is what is followed of one group or entry.
type Trail interface {
	// Onto returns ctx with the trail in it, for whoever works on the group next.
	Onto(ctx context.Context) context.Context
	// End is called once, with the error that the group or entry ended with. A
	// group may end without one and be cut anew, if nobody took it.
	End(err error)
}

// onto returns ctx with the trail in it, if there is one.
func onto(ctx context.Context, trail Trail) context.Context {
	if trail == nil {
		return ctx
	}
	return trail.Onto(ctx)
}

// endTrail ends a trail, if there is one.
func endTrail(trail Trail, err error) {
	if trail != nil {
		trail.End(err)
	}
}
