package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// callMetrics are those of the gRPC server, under the names that go-grpc-middleware
// gives them. They are counted here because its interceptor costs a small call
// several times as much as counting does.
type callMetrics struct {
	started, handled, received, sent *prometheus.CounterVec
	handling                         *prometheus.HistogramVec
	exchanged                        *prometheus.CounterVec
	// methods is not changed once the server serves.
	methods map[string]*method
}

type method struct {
	kind, service, name string
	// rows are made for the first call: most methods of a node are never called.
	rows func() rows
}

type rows struct {
	started, ok, received, sent prometheus.Counter
	handling                    prometheus.Observer
}

func (m *Metrics) newCallMetrics() callMetrics {
	labels := []string{"grpc_type", "grpc_service", "grpc_method"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return m.factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return callMetrics{
		started: counter("grpc_server_started_total", "Calls that began on the server.", labels...),
		handled: counter("grpc_server_handled_total", "Calls that ended on the server, with any outcome.", append(labels, "grpc_code")...),
		received: counter("grpc_server_msg_received_total",
			"Messages that came from callers; one for each unary call.", labels...),
		sent: counter("grpc_server_msg_sent_total",
			"Messages that were sent to callers; one for each unary call that ended well.", labels...),
		handling: m.factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "grpc_server_handling_seconds", Help: "Time of calls on the server.", Buckets: seconds(),
		}, labels),
		exchanged: m.counterVec("exchange_calls_total",
			"Calls that came in messages of the Exchange stream and ended, by the method of the same name.", "grpc_method", "grpc_code"),
	}
}

// Methods makes the methods of servers known; others are not counted. It is
// called once, before the servers serve.
func (m *Metrics) Methods(servers ...map[string]grpc.ServiceInfo) {
	m.calls.methods = map[string]*method{}
	for _, services := range servers {
		for service, info := range services {
			for _, i := range info.Methods {
				m.calls.methods["/"+service+"/"+i.Name] = m.calls.method(service, i)
			}
		}
	}
}

func (c *callMetrics) method(service string, info grpc.MethodInfo) *method {
	kind := kindOf(info)
	return &method{kind, service, info.Name, sync.OnceValue(func() rows {
		return rows{
			started:  c.started.WithLabelValues(kind, service, info.Name),
			ok:       c.handled.WithLabelValues(kind, service, info.Name, codes.OK.String()),
			received: c.received.WithLabelValues(kind, service, info.Name),
			sent:     c.sent.WithLabelValues(kind, service, info.Name),
			handling: c.handling.WithLabelValues(kind, service, info.Name),
		}
	})}
}

// unary is the kind of a method without streams, whose messages are counted with its calls.
const unary = "unary"

func kindOf(info grpc.MethodInfo) string {
	switch {
	case info.IsClientStream && info.IsServerStream:
		return "bidi_stream"
	case info.IsClientStream:
		return "client_stream"
	case info.IsServerStream:
		return "server_stream"
	default:
		return unary
	}
}

// Started, Received, Sent, Handled and Exchanged count as grpcapi.Observer says.
func (m *Metrics) Started(full string) {
	method := m.calls.methods[full]
	if method == nil {
		return
	}
	rows := method.rows()
	rows.started.Inc()
	if method.kind == unary {
		rows.received.Inc()
	}
}

// Received counts a message that came on a stream.
func (m *Metrics) Received(full string) {
	if method := m.calls.methods[full]; method != nil {
		method.rows().received.Inc()
	}
}

// Sent counts a message that was sent on a stream.
func (m *Metrics) Sent(full string) {
	if method := m.calls.methods[full]; method != nil {
		method.rows().sent.Inc()
	}
}

// Handled counts a call that ended.
func (m *Metrics) Handled(full string, code codes.Code, took time.Duration) {
	method := m.calls.methods[full]
	if method == nil {
		return
	}
	rows := method.rows()
	rows.handling.Observe(took.Seconds())
	if code == codes.OK {
		rows.ok.Inc()
		if method.kind == unary {
			rows.sent.Inc()
		}
		return
	}
	m.calls.handled.WithLabelValues(method.kind, method.service, method.name, code.String()).Inc()
}

// Exchanged counts a call in a message of an Exchange, by the full method that
// it stands for.
func (m *Metrics) Exchanged(full string, code codes.Code) {
	m.calls.exchanged.WithLabelValues(full[strings.LastIndexByte(full, '/')+1:], code.String()).Inc()
}
