package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestAnAnswerMayEndItsConnection has a node that says with each answer that it will end
// the connection, as one that stops does, and whose answers come in pieces.
func TestAnAnswerMayEndItsConnection(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == "GetStatus" {
			http.NotFound(w, r)
			return
		}
		asked.Add(1)
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).Flush()
		<-time.After(50 * time.Millisecond)
		_, _ = io.WriteString(w, `{"blocks":[{"first":"7","last":"7"}],"logIndex":"101"}`)
	}))
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		asked.Store(0)
		r := l.start(t)
		r.task(t, task{
			Endpoints: []string{strings.TrimPrefix(server.URL, "http://")},
			Calls:     []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
		})
		var got []outcome
		r.answer(t, &got)
		if want := []outcome{{Values: []string{"7"}}}; !reflect.DeepEqual(got, want) || asked.Load() != 1 {
			t.Errorf("after %d requests the call ended with %+v", asked.Load(), got)
		}
	})
}

// TestAnotherServersAnswerIsNone has a server that answers everything with JSON of its
// own, as one may that stands before nodes. It does not say what became of the call. The
// time of a call may be over before it is connected: such a call is made again.
func TestAnotherServersAnswerIsNone(t *testing.T) {
	answers := []struct {
		status int
		body   string
	}{
		{http.StatusOK, `{"status":"ok"}`},
		{http.StatusOK, `{"logIndex":"high","appliedIndex":"high"}`},
		{http.StatusOK, `null`},
		{http.StatusServiceUnavailable, `{"code":"busy","details":{"debug":7}}`},
		{http.StatusServiceUnavailable, `{"code":"busy","details":[{"debug":{"retryDelay":"soon"}},null]}`},
	}
	var current atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answers[current.Load()].status)
		_, _ = io.WriteString(w, answers[current.Load()].body)
	}))
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		for i, answer := range answers {
			current.Store(int32(i))
			var got []outcome
			for try := 0; try < 5 && !reflect.DeepEqual(got, []outcome{{Error: &failure{Type: "OutcomeUnknown"}}}); try++ {
				r.task(t, task{
					Endpoints: []string{strings.TrimPrefix(server.URL, "http://")}, Options: options{TimeoutMs: 500},
					Calls: []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
				})
				got = nil
				r.answer(t, &got)
			}
			if len(got) != 1 || got[0].Error == nil || *got[0].Error != (failure{Type: "OutcomeUnknown"}) {
				t.Errorf("%s: the call ended with %+v", answer.body, got)
			}
		}
	})
}

// TestNoProxyIsAsked: a cluster is not reached through a web proxy, of which a whole
// machine may be told.
func TestNoProxyIsAsked(t *testing.T) {
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	t.Setenv("JAVA_TOOL_OPTIONS", "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=1 -Dhttp.nonProxyHosts=")
	c := testCase{
		Calls:  []call{{Call: "identity.next", Args: args{Name: "invoices"}, Values: []string{"7"}}},
		Server: []exchange{{Method: "NextIdentity", Answer: json.RawMessage(`{"blocks":[{"first":"7","last":"7"}],"logIndex":"101"}`)}},
	}
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		s := newScript(c)
		var got []outcome
		r.task(t, task{Endpoints: s.serveHTTP(t, 1), Options: options{TimeoutMs: 2000}, Calls: c.Calls})
		r.answer(t, &got)
		judge(t, c, s, got)
	})
}

// TestHalfACharacterIsRefused: text that is not Unicode is no other text. JSON in Go
// cannot say it, so the task is written here.
func TestHalfACharacterIsRefused(t *testing.T) {
	c := testCase{Calls: []call{{Call: "claim", Error: &failure{Type: "Invalid"}}}}
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		s := newScript(c)
		endpoint := s.serveHTTP(t, 1)[0]
		r.task(t, json.RawMessage(fmt.Sprintf(`{"endpoints":[%q],"calls":[{"call":"claim","args":{"id":"users/\ud800"}}]}`, endpoint)))
		var got []outcome
		r.answer(t, &got)
		judge(t, c, s, got)
	})
}
