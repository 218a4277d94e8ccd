// Package tracetest is the other end of tracing in tests: a collector that keeps
// the traces it is sent, and finds spans in them.
package tracetest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector takes traces as an OpenTelemetry collector does. It is safe for
// concurrent use.
type Collector struct {
	mu       sync.Mutex
	resource []string
	spans    []Span
}

// Span is a span, and the instance that it came from.
type Span struct {
	*tracev1.Span
	Instance string
}

// Serve serves on loopback until the test ends, and returns the endpoint.
func (c *Collector) Serve(t *testing.T) (endpoint string) {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server.URL
}

func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request collectorv1.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.add(&request)
}

func (c *Collector) add(request *collectorv1.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		instance := ""
		for _, a := range of.GetResource().GetAttributes() {
			c.resource = append(c.resource, a.GetKey()+"="+a.GetValue().GetStringValue())
			if a.GetKey() == "service.instance.id" {
				instance = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, Span{s, instance})
			}
		}
	}
}

// Resource returns the attributes of the senders of traces, as key=value.
func (c *Collector) Resource() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.resource)
}

// Spans returns all spans that arrived.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Span returns the span of this name, of which there must be one.
func (c *Collector) Span(t *testing.T, name string) Span {
	t.Helper()
	found := slices.DeleteFunc(c.Spans(), func(s Span) bool { return s.GetName() != name })
	if len(found) != 1 {
		t.Fatalf("%d spans are called %q, want 1 of %v", len(found), name, c.Spans())
	}
	return found[0]
}

// Attribute returns an attribute of a span as text; "" if it has none.
func Attribute(s Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			if text := a.GetValue().GetStringValue(); text != "" {
				return text
			}
			return fmt.Sprint(a.GetValue().GetIntValue())
		}
	}
	return ""
}
