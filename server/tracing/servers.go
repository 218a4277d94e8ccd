package tracing

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
)

// publicPrefix begins the methods that are followed, over gRPC and as JSON over HTTP: not the calls between nodes,
// nor those that look at the node's health.
const publicPrefix = "/idnode.v1."

// ServerOptions are those of a gRPC server whose calls are followed.
func (t *Tracing) ServerOptions() []grpc.ServerOption {
	if t == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(t.carry), otelgrpc.WithFilter(followed),
	))}
}

// Exchange returns what begins the spans of an Exchange's calls: the stream has none.
func (t *Tracing) Exchange() func(ctx context.Context, method, from string) (context.Context, func(error)) {
	if t == nil {
		return nil
	}
	return func(ctx context.Context, method, from string) (context.Context, func(error)) {
		ctx = t.carry.Extract(ctx, propagation.MapCarrier{traceparent: from})
		ctx, span := t.tracer.Start(ctx, strings.TrimPrefix(method, "/"), trace.WithSpanKind(trace.SpanKindServer))
		return ctx, func(err error) {
			if slices.Contains(nodesFault, status.Code(err)) {
				span.SetStatus(codes.Error, err.Error())
			}
			span.End()
		}
	}
}

// nodesFault are the codes with which otelgrpc marks a server's span as failed.
var nodesFault = []grpccodes.Code{
	grpccodes.Unknown, grpccodes.DeadlineExceeded, grpccodes.Unimplemented, grpccodes.Internal, grpccodes.Unavailable, grpccodes.DataLoss,
}

// followed leaves Exchange out, a span of hours: its calls name their callers' spans.
func followed(info *stats.RPCTagInfo) bool {
	return strings.HasPrefix(info.FullMethodName, publicPrefix) && info.FullMethodName != idnodev1.IdsService_Exchange_FullMethodName
}

// idPaths begins the paths of RavenDB's calls for ids.
const idPaths = "/databases/"

// Handler returns a handler that follows RavenDB's calls for ids, and those of the
// public API, that it passes on to next.
func (t *Tracing) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, idPaths) && !strings.HasPrefix(r.URL.Path, publicPrefix) {
			next.ServeHTTP(w, r)
			return
		}
		t.followHTTP(w, r, next)
	})
}

// followHTTP follows one call. Its span is named by the route: there are few of those.
func (t *Tracing) followHTTP(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx := t.carry.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	r = r.WithContext(ctx)
	answer := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	next.ServeHTTP(answer, r)
	span.SetAttributes(attribute.String("http.request.method", r.Method), attribute.Int("http.response.status_code", answer.status))
	if r.Pattern != "" {
		span.SetName(r.Method + " " + r.Pattern)
		span.SetAttributes(attribute.String("http.route", r.Pattern))
	}
	if answer.status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(answer.status))
	}
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (a *statusWriter) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *statusWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }
