package grpcapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/service"
)

// observed counts what the service tells of a call too, where it ends.
type observed struct {
	*metrics.Metrics
	events service.Events
}

func (o observed) Handled(method string, code codes.Code, took time.Duration) {
	o.events.Issued("default", docid.Identity, 1)
	o.Metrics.Handled(method, code, took)
}

// TestRefusalsOfAStream: what an Exchange refuses by itself is counted too.
func TestRefusalsOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t, 2, 1<<30)
		seen := &refusals{reasons: map[string]int{}}
		p.server.log.observer = seen
		release := p.hold()
		bad := nextIdentity(1, "a")
		bad.Timeout = durationpb.New(-1)
		p.call(bad, &idnodev1.Call{Correlation: 9})
		p.replies()
		p.call(nextIdentity(1, "a"), nextIdentity(1, "a"), nextIdentity(2, "a"), nextIdentity(3, "a"), guid(4))
		p.replies()
		release()
		p.replies()
		want := map[string]int{"INVALID_TIMEOUT": 1, "INVALID_REQUEST": 1, "INVALID_CORRELATION": 1, "OVERLOADED": 2}
		if diff := cmp.Diff(want, seen.reasons); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// refusals counts refusals.
type refusals struct {
	observed
	mu      sync.Mutex
	reasons map[string]int
}

func (*refusals) Exchanged(string, codes.Code) {}

func (r *refusals) Refused(reason string, calls int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons[reason] += calls
}

// TestMessagesAreCounted: of each kind of method, what is received and sent.
func TestMessagesAreCounted(t *testing.T) {
	m := metrics.New("")
	r := serve(t, Config{Observer: m}, func(s *grpc.Server) { m.Methods(s.GetServiceInfo()) })
	if _, err := r.ids.NextIdentity(bounded(t), &idnodev1.NextIdentityRequest{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ids.NextIdentity(bounded(t), &idnodev1.NextIdentityRequest{}); err == nil {
		t.Fatal("a name that is empty")
	}
	stream := r.exchange(t)
	for i := range uint64(3) {
		if err := stream.Send(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{guid(i)}}); err != nil {
			t.Fatal(err)
		}
		receive(t, stream, 1)
	}
	for _, want := range []string{
		`grpc_server_msg_received_total{grpc_method="NextIdentity",grpc_service="idnode.v1.IdsService",grpc_type="unary"} 2`,
		`grpc_server_msg_sent_total{grpc_method="NextIdentity",grpc_service="idnode.v1.IdsService",grpc_type="unary"} 1`,
		`grpc_server_msg_received_total{grpc_method="Exchange",grpc_service="idnode.v1.IdsService",grpc_type="bidi_stream"} 3`,
		`grpc_server_msg_sent_total{grpc_method="Exchange",grpc_service="idnode.v1.IdsService",grpc_type="bidi_stream"} 3`,
	} {
		// The last message may be here before it is counted there.
		for end := time.Now().Add(10 * time.Second); !strings.Contains(scrape(m), want+"\n"); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("%s is not in the scrape", want)
			}
		}
	}
}

func scrape(m *metrics.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// BenchmarkMetrics is what metrics cost a unary call that takes one identity, from
// which the log and the network are left out.
func BenchmarkMetrics(b *testing.B) {
	unary := func(b *testing.B, r *rig) {
		r.answerAlike(b)
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r.unary(b)
			}
		})
	}
	b.Run("without", func(b *testing.B) {
		unary(b, serve(b, Config{Logger: slog.New(slog.DiscardHandler)}, nil))
	})
	b.Run("with", func(b *testing.B) {
		m := metrics.New("")
		cfg := Config{Logger: slog.New(slog.DiscardHandler), Observer: observed{m, m.Service()}}
		unary(b, serve(b, cfg, func(s *grpc.Server) { m.Methods(s.GetServiceInfo()) }))
	})
}
