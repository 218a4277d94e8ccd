package tracing

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/server/peer"
	"github.com/idnode/idnode/server/service"
)

const (
	// spanPropose is one call's wait for the log.
	spanPropose = "propose"
	// spanGroup is a group's way to the leader and back, on the node that its calls came to.
	spanGroup = "group"
	// spanEntry is a log entry from its proposal until the leader had applied it.
	spanEntry = "log entry"
)

// maxLinks bounds the links of a span that the work of many is part of.
const maxLinks = 32

func operations(n int) attribute.KeyValue { return attribute.Int("idnode.operations", n) }

func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		span.SetAttributes(
			attribute.String("idnode.outcome", outcome.Of(err).String()),
			attribute.String("idnode.reason", outcome.ReasonOf(err).String()))
	}
	span.End()
}

// Proposer returns a Proposer that proposes to p and follows what it does.
func (t *Tracing) Proposer(p service.Proposer) service.Proposer {
	if t == nil {
		return p
	}
	return proposer{t, p}
}

type proposer struct {
	tracing *Tracing
	next    service.Proposer
}

func (p proposer) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	ctx, span := p.tracing.tracer.Start(ctx, spanPropose, trace.WithAttributes(operations(1)))
	result, err := p.next.Propose(ctx, operation)
	end(span, err)
	return result, err
}

// ProposeAll implements service.Proposer. Of several errors the span shows the first.
func (p proposer) ProposeAll(ctx context.Context, ops [][]byte) ([][]byte, []error) {
	ctx, span := p.tracing.tracer.Start(ctx, spanPropose, trace.WithAttributes(operations(len(ops))))
	results, errs := p.next.ProposeAll(ctx, ops)
	end(span, cmp.Or(errs...))
	return results, errs
}

// Cluster returns events that also follow groups and entries.
func (t *Tracing) Cluster(events cluster.Events) cluster.Events {
	if t != nil {
		events.Groups.StartSpan, events.Entries.StartSpan = t.startSpan(spanGroup), t.startSpan(spanEntry)
	}
	return events
}

// startSpan returns a StartSpan for spans of this name. Such a span is
// part of the trace of the first caller that is followed, and has links to the
// others; where no caller is followed there is none.
func (t *Tracing) startSpan(name string) commit.StartSpan {
	return func(callers []context.Context, n int) commit.Span {
		var first context.Context
		var links []trace.Link
		for _, caller := range callers {
			of := trace.SpanContextFromContext(caller)
			switch {
			case !of.IsSampled() || len(links) == maxLinks:
			case first == nil:
				first = caller
			case !linked(links, of) && !of.Equal(trace.SpanContextFromContext(first)):
				links = append(links, trace.Link{SpanContext: of})
			}
		}
		if first == nil {
			return nil
		}
		// The first caller may go away before the others: its context is not used on.
		parent := trace.ContextWithSpan(context.Background(), trace.SpanFromContext(first))
		_, span := t.tracer.Start(parent, name, trace.WithLinks(links...), trace.WithAttributes(operations(n)))
		return spanHook{span}
	}
}

// linked looks at the newest link alone: the operations of one call stand side by side.
func linked(links []trace.Link, to trace.SpanContext) bool {
	return len(links) > 0 && links[len(links)-1].SpanContext.Equal(to)
}

type spanHook struct{ span trace.Span }

func (s spanHook) Onto(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, s.span)
}

func (s spanHook) End(err error) { end(s.span, err) }

const traceparent = "traceparent"

// Traceparent returns what peer.PoolConfig needs to let groups take their trace along.
func (t *Tracing) Traceparent() func(ctx context.Context) string {
	if t == nil {
		return nil
	}
	return func(ctx context.Context) string {
		headers := propagation.MapCarrier{}
		t.carry.Inject(ctx, headers)
		return headers[traceparent]
	}
}

// Peer returns what takes up the traces of other nodes' groups.
func (t *Tracing) Peer() peer.Trace {
	if t == nil {
		return nil
	}
	return func(ctx context.Context, from string) context.Context {
		return t.carry.Extract(ctx, propagation.MapCarrier{traceparent: from})
	}
}
