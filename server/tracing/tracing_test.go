package tracing

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/test/tracetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// traced returns a Tracing that sends to a collector, and what sends
// all that was followed.
func traced(t *testing.T, more ...string) (*Tracing, *tracetest.Collector, func()) {
	t.Helper()
	c := &tracetest.Collector{}
	variables := append(more, envEndpoint, c.Serve(t))
	for i := 0; i < len(variables); i += 2 {
		t.Setenv(variables[i], variables[i+1])
	}
	tracing, err := Start(t.Context(), Config{Version: "1.2.3", Instance: "A", Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	if tracing == nil {
		t.Fatal("no traces")
	}
	stop := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := tracing.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return tracing, c, stop
}

// TestWhenThereAreTraces: which variables turn them on, and which of them are refused by name.
func TestWhenThereAreTraces(t *testing.T) {
	for _, tt := range []struct {
		env  string
		on   bool
		want string
	}{
		{"", false, ""},
		{"OTEL_SERVICE_NAME=ids", false, ""},
		{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", false, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", true, ""},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:4318/v1/traces", true, ""},
		{"OTEL_TRACES_EXPORTER=otlp", true, ""},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", true, ""},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", true, ""},
		{"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", false, ""},
		{"OTEL_SDK_DISABLED=TRUE OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", false, ""},
		{"OTEL_TRACES_EXPORTER=zipkin", false, `OTEL_TRACES_EXPORTER is "zipkin"`},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc", false, `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": there is only http/protobuf`},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json", false, `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is "http/json"`},
	} {
		env := map[string]string{}
		for _, pair := range strings.Fields(tt.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		tracing, err := Start(t.Context(), Config{Getenv: func(name string) string { return env[name] }})
		if (tracing != nil) != tt.on || (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: traces %v, %v; want %v, %q", tt.env, tracing != nil, err, tt.on, tt.want)
		}
		if err := tracing.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestNoTracing: without traces everything stays what it was.
func TestNoTracing(t *testing.T) {
	none, err := Start(t.Context(), Config{Getenv: func(string) string { return "" }})
	if err != nil || none != nil {
		t.Fatalf("%v, %v", none, err)
	}
	next := &log{}
	events := none.Cluster(cluster.Events{})
	if none.Proposer(next) != next || none.ServerOptions() != nil || none.Exchange() != nil ||
		none.Traceparent() != nil || none.Peer() != nil ||
		events.Groups.StartSpan != nil || events.Entries.StartSpan != nil {
		t.Error("something is followed")
	}
	mux := http.NewServeMux()
	if none.Handler(mux) != http.Handler(mux) {
		t.Error("calls over HTTP are followed")
	}
	if err := none.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// log is a proposer that answers with what it was asked, or with an error.
type log struct {
	err error
	ctx context.Context
}

func (l *log) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	l.ctx = ctx
	return operation, l.err
}

func (l *log) ProposeAll(ctx context.Context, operations [][]byte) ([][]byte, []error) {
	l.ctx = ctx
	errs := make([]error, len(operations))
	errs[len(errs)-1] = l.err
	return operations, errs
}

// TestPropose: a span of a proposal is part of its caller's trace, and says what
// became of it.
func TestPropose(t *testing.T) {
	tracing, c, stop := traced(t)
	next := &log{}
	p := tracing.Proposer(next)
	ctx, caller := tracing.tracer.Start(t.Context(), "caller")
	if got, err := p.Propose(ctx, []byte("a")); err != nil || string(got) != "a" {
		t.Errorf("%s, %v", got, err)
	}
	caller.End()
	of := trace.SpanContextFromContext(next.ctx)
	stop()
	s := c.Span(t, spanPropose)
	callerID, ofID := caller.SpanContext().SpanID(), of.SpanID()
	if !slices.Equal(s.GetParentSpanId(), callerID[:]) || !slices.Equal(s.GetSpanId(), ofID[:]) ||
		tracetest.Attribute(s, "idnode.operations") != "1" {
		t.Errorf("%v", s)
	}
	for _, want := range []string{"service.name=idnode", "service.version=1.2.3", "service.instance.id=A"} {
		if !slices.Contains(c.Resource(), want) {
			t.Errorf("%s is not in %v", want, c.Resource())
		}
	}
}

// TestProposeFails: of several operations, one of which may be in the log.
func TestProposeFails(t *testing.T) {
	tracing, c, stop := traced(t)
	p := tracing.Proposer(&log{err: outcome.NewUnknown(outcome.LeadershipLost, errors.New("gone"))})
	if _, errs := p.ProposeAll(t.Context(), [][]byte{{1}, {2}}); errs[1] == nil {
		t.Error("no error")
	}
	stop()
	s := c.Span(t, spanPropose)
	if s.GetStatus().GetCode() != tracev1.Status_STATUS_CODE_ERROR || tracetest.Attribute(s, "idnode.outcome") != outcome.Unknown.String() ||
		tracetest.Attribute(s, "idnode.reason") != outcome.LeadershipLost.String() || tracetest.Attribute(s, "idnode.operations") != "2" {
		t.Errorf("%v", s)
	}
}

// TestFollow: a group is part of its first followed caller's trace and points to
// the others; its trace goes to another node and on from there.
func TestFollow(t *testing.T) {
	tracing, c, stop := traced(t)
	first, spanOne := tracing.tracer.Start(t.Context(), "one")
	second, spanTwo := tracing.tracer.Start(t.Context(), "two")
	events := tracing.Cluster(cluster.Events{})
	group := events.Groups.StartSpan([]context.Context{t.Context(), first, first, second, second}, 5)
	away := tracing.Traceparent()(group.Onto(t.Context()))
	entry := events.Entries.StartSpan([]context.Context{tracing.Peer()(context.Background(), away)}, 5)
	entry.End(nil)
	group.End(nil)
	spanOne.End()
	spanTwo.End()
	if none := events.Groups.StartSpan([]context.Context{t.Context()}, 1); none != nil {
		t.Error("a group of callers who are not followed is")
	}
	stop()
	g, e, one, two := c.Span(t, spanGroup), c.Span(t, spanEntry), c.Span(t, "one"), c.Span(t, "two")
	if !slices.Equal(g.GetParentSpanId(), one.GetSpanId()) || len(g.GetLinks()) != 1 ||
		!slices.Equal(g.GetLinks()[0].GetSpanId(), two.GetSpanId()) {
		t.Errorf("the group %v of %v and %v", g, one, two)
	}
	if !slices.Equal(e.GetParentSpanId(), g.GetSpanId()) || !slices.Equal(e.GetTraceId(), one.GetTraceId()) {
		t.Errorf("the entry %v of the group %v", e, g)
	}
}

// TestHandler: calls for ids over HTTP are followed under their route, others are
// not.
func TestHandler(t *testing.T) {
	tracing, c, stop := traced(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/databases/{db}/stats", func(w http.ResponseWriter, r *http.Request) {
		if !trace.SpanContextFromContext(r.Context()).IsValid() {
			t.Error("the trace is not in the context of the call")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/metrics", func(_ http.ResponseWriter, r *http.Request) {
		if trace.SpanContextFromContext(r.Context()).IsValid() {
			t.Error("a scrape is followed")
		}
	})
	h := tracing.Handler(mux)
	r := httptest.NewRequest(http.MethodGet, "/databases/secret/stats", nil)
	r.Header.Set("Traceparent", "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable {
		t.Error(w.Code)
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
	stop()
	s := c.Span(t, "GET /databases/{db}/stats")
	if s.GetParentSpanId()[0] != 1 || s.GetKind() != tracev1.Span_SPAN_KIND_SERVER ||
		s.GetStatus().GetCode() != tracev1.Status_STATUS_CODE_ERROR ||
		strings.Contains(s.String(), "secret") {
		t.Errorf("%v", s)
	}
}

// TestSampler: the usual variables decide what is sent.
func TestSampler(t *testing.T) {
	tracing, c, stop := traced(t, "OTEL_TRACES_SAMPLER", "always_off")
	if _, err := tracing.Proposer(&log{}).Propose(t.Context(), nil); err != nil {
		t.Error(err)
	}
	stop()
	if len(c.Spans()) != 0 {
		t.Errorf("%v", c.Spans())
	}
}
