package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/server/service"
)

// greeting is the handler of a node whose other calls than GetStatus another handler answers.
func greeting(other http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(service.ClusterIDHeader, "c")
		if path.Base(r.URL.Path) != "GetStatus" {
			other(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"clusterId":"c","self":{"tag":"A"},"leaderTag":"A","hasQuorum":true,"appliedIndex":"100","members":[{"tag":"A"}]}`)
	}
}

// seven is a node's answer that gives the value 7.
const seven = `{"blocks":[{"first":"7","last":"7"}],"logIndex":"101"}`

func giveSeven(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, seven) }

// nextInvoice has a client ask a server for an identity, and returns what came of it.
func (l language) nextInvoice(t *testing.T, server *httptest.Server) (got []outcome) {
	t.Helper()
	r := l.start(t)
	r.task(t, task{
		Endpoints: []string{strings.TrimPrefix(server.URL, "http://")},
		Calls:     []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
	})
	r.answer(t, &got)
	return got
}

// TestAnAnswerMayEndItsConnection has a node that says with each answer that it will end
// the connection, as one that stops does, and whose answers come in pieces.
func TestAnAnswerMayEndItsConnection(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).Flush()
		<-time.After(50 * time.Millisecond)
		_, _ = io.WriteString(w, seven)
	}))
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		asked.Store(0)
		got := l.nextInvoice(t, server)
		if want := []outcome{{Values: []string{"7"}}}; !reflect.DeepEqual(got, want) || asked.Load() != 1 {
			t.Errorf("after %d requests the call ended with %+v", asked.Load(), got)
		}
	})
}

// TestAnotherServersAnswerIsNone has a server before a node that answers calls with JSON of
// its own. It does not say what became of the call. The time of a call may be over before it
// is connected: such a call is made again.
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
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answers[current.Load()].status)
		_, _ = io.WriteString(w, answers[current.Load()].body)
	}))
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		for i, answer := range answers {
			current.Store(int32(i))
			got := r.untilFailedAs(t, task{
				Endpoints: []string{strings.TrimPrefix(server.URL, "http://")}, Options: options{TimeoutMs: 500},
				Calls: []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
			}, failure{Type: "OutcomeUnknown"})
			if !failedAs(got, failure{Type: "OutcomeUnknown"}) {
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
		Server: []exchange{{Method: "NextIdentity", Answer: json.RawMessage(seven)}},
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

// TestAnAnswerWithoutAFieldIsNone has a node whose answers have nothing but a log index. No
// call gives a value, and the program goes on. The time of a call may be over before it is
// connected: such a call is made again.
func TestAnAnswerWithoutAFieldIsNone(t *testing.T) {
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"logIndex":"101"}`) }))
	t.Cleanup(server.Close)
	unknown, none := failure{Type: "OutcomeUnknown"}, failure{Type: "NoEndpoint", Reason: "NO_ENDPOINT"}
	calls := []call{
		{Call: "next", Args: args{Template: "invoices|"}, Error: &unknown},
		{Call: "next", Args: args{Template: "users/"}, Error: &none},
		{Call: "identity.next", Args: args{Name: "invoices"}, Error: &unknown},
		{Call: "identity.get", Args: args{Name: "invoices"}, Error: &none},
		{Call: "identity.seed", Args: args{Name: "invoices", Value: "7"}, Error: &unknown},
		{Call: "identity.delete", Args: args{Name: "invoices"}, Error: &unknown},
		{Call: "identities", Error: &none},
		{Call: "claims", Error: &none},
		{Call: "hilo", Args: args{Tag: "users"}, Error: &unknown},
		{Call: "series.take", Args: args{Name: "bills", Keys: []string{"a"}}, Error: &unknown},
		{Call: "series.find", Args: args{Name: "bills", Keys: []string{"a"}}, Error: &none},
	}
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		for _, c := range calls {
			got := r.untilFailedAs(t, task{
				Endpoints: []string{strings.TrimPrefix(server.URL, "http://")}, Options: options{TimeoutMs: 300}, Calls: []call{c},
			}, *c.Error)
			if !failedAs(got, *c.Error) {
				t.Errorf("%s ended with %+v, want %+v", c.Call, got, c.Error)
			}
		}
	})
}

// TestAnAnswerOfAnotherClusterIsNotTaken has a server that answers whatever cluster a call names.
func TestAnAnswerOfAnotherClusterIsNotTaken(t *testing.T) {
	var greets, gives string // The clusters that the answers name.
	node := greeting(giveSeven)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := httptest.NewRecorder()
		node(got, r)
		names := gives
		if path.Base(r.URL.Path) == "GetStatus" {
			names = greets
		}
		if names != "" {
			w.Header().Set(service.ClusterIDHeader, names)
		}
		_, _ = w.Write(got.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	other := failure{Type: "OtherCluster", Reason: "OTHER_CLUSTER"}
	cases := []struct {
		greets, gives string
		want          failure
	}{
		{"other", "other", other}, {"", "c", other}, {"c", "other", other}, {"c", "", failure{Type: "OutcomeUnknown"}},
	}
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		for _, pin := range []string{"c", ""} {
			for _, c := range cases {
				if pin == "" && c.greets == c.gives {
					continue // It is the client's cluster.
				}
				greets, gives = c.greets, c.gives
				got := r.untilFailedAs(t, task{
					Endpoints: []string{strings.TrimPrefix(server.URL, "http://")}, Options: options{TimeoutMs: 1000, ClusterID: pin},
					Calls: []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
				}, c.want)
				if !failedAs(got, c.want) {
					t.Errorf("pin %q, %+v: the call ended with %+v", pin, c, got)
				}
			}
		}
	})
}

// TestAClusterOfOneNodeIsNamed in the log, where it is one of several endpoints.
func TestAClusterOfOneNodeIsNamed(t *testing.T) {
	server := httptest.NewServer(greeting(giveSeven))
	t.Cleanup(server.Close)
	endpoint := strings.TrimPrefix(server.URL, "http://")
	eachLanguage(t, func(t *testing.T, l language) {
		for _, endpoints := range [][]string{{endpoint}, {freeport.For(t), endpoint}} {
			log, err := os.Create(filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			stderr := os.Stderr
			os.Stderr = log
			r := l.start(t)
			os.Stderr = stderr
			var got []outcome
			next := call{Call: "identity.next", Args: args{Name: "invoices"}}
			r.task(t, task{Endpoints: endpoints, Calls: []call{next, next}})
			r.answer(t, &got)
			text, err := os.ReadFile(log.Name())
			if err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(string(text), endpoint+" is one of several endpoints"); lines != len(endpoints)-1 || len(got) != 2 {
				t.Errorf("%d endpoints: %+v, the log is %q", len(endpoints), got, text)
			}
		}
	})
}

// TestAWrongAnswerIsAskedForAgain has a node before which another server answers first, also
// with a refusal of its own.
func TestAWrongAnswerIsAskedForAgain(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusNotFound)
		case 2:
			_, _ = io.WriteString(w, `{"status":"ok"}`)
		default:
			_, _ = io.WriteString(w, seven)
		}
	}))
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		asked.Store(0)
		got := l.nextInvoice(t, server)
		if want := []outcome{{Values: []string{"7"}}}; !reflect.DeepEqual(got, want) {
			t.Errorf("the call ended with %+v", got)
		}
	})
}

// TestTheMostKeysAreConfirmed: what a call takes, the next one confirms, though its list is longer.
func TestTheMostKeysAreConfirmed(t *testing.T) {
	const most, size = 1000, service.MaxSeriesKeyBytes / 1000
	keys, taken := make([]string, most), make([]string, most)
	for i := range keys {
		keys[i] = fmt.Sprintf("%0*d%s", size-2*10, i, strings.Repeat("é", 10))
		number := 1_000_000_000_000_000_000 + i
		taken[i] = fmt.Sprintf(`{"key":%q,"text":"%d","number":"%d","state":"NUMBER_STATE_OPEN"}`, keys[i], i, number)
	}
	c := testCase{
		Calls: []call{{Call: "series.confirmTaken", Args: args{Name: "bills", Keys: keys}}},
		Server: []exchange{
			{Method: "TakeNumbers", Answer: json.RawMessage(`{"numbers":[` + strings.Join(taken, ",") + `],"logIndex":"101"}`)},
			{Method: "ConfirmNumbers", Answer: json.RawMessage(`{"logIndex":"102"}`)},
		},
	}
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		s := newScript(c)
		var got []outcome
		r.task(t, task{Endpoints: s.serveHTTP(t, 1), Calls: c.Calls})
		r.answer(t, &got)
		judge(t, c, s, got)
	})
}

// TestClosingEndsConnections has a program that goes on after it has closed its client.
func TestClosingEndsConnections(t *testing.T) {
	var open atomic.Int32
	server := httptest.NewUnstartedServer(greeting(giveSeven))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		l.nextInvoice(t, server)
		for deadline := time.Now().Add(answerWithin); open.Load() > 0; <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d connections are left", open.Load())
			}
		}
	})
}

// TestErrorsHaveCauses has an endpoint where nobody listens. The time of a call may be over before it
// has asked there: it has four times as long then.
func TestErrorsHaveCauses(t *testing.T) {
	c := testCase{Calls: []call{
		{Call: "claim", Args: args{ID: "users/ayende"}}, {Call: "hilo", Args: args{Tag: "users"}},
	}}
	check := func(t *testing.T, run func(o options) []outcome) {
		t.Helper()
		for wait := 300; ; wait *= 4 {
			got := run(options{TimeoutMs: wait})
			without := slices.IndexFunc(got, func(o outcome) bool { return o.Error == nil || !o.Cause })
			if without < 0 {
				return
			}
			if wait > 5000 {
				t.Fatalf("%s ended with %+v, without a cause", c.Calls[without].Call, got[without].Error)
			}
		}
	}
	nobody := []string{"127.0.0.1:1"}
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		check(t, func(o options) (got []outcome) {
			r.task(t, task{Endpoints: nobody, Options: o, Calls: c.Calls})
			r.answer(t, &got)
			return got
		})
	})
	t.Run("go", func(t *testing.T) {
		check(t, func(o options) []outcome { return callGo(t, nobody, testCase{Options: o, Calls: c.Calls}) })
	})
}

// TestRangesAreReturnedSideBySide has a node that answers no return before half of them are
// there: handle after handle, they would take longer than the client's time.
func TestRangesAreReturnedSideBySide(t *testing.T) {
	const tags = 8
	var mu sync.Mutex
	var returned int
	var enough chan struct{}
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then does the server notice that the client leaves.
		if path.Base(r.URL.Path) == "NextRange" {
			_, _ = io.WriteString(w, `{"prefix":"users/","low":"1","high":"9","size":"9","nodeTag":"A","rangeAt":null,"fromReserve":false,"token":"AQ==","logIndex":"101"}`)
			return
		}
		mu.Lock()
		here := enough
		if returned++; returned == tags/2 {
			close(enough)
		}
		mu.Unlock()
		select {
		case <-here:
			_, _ = io.WriteString(w, `{"returned":true,"max":"1","logIndex":"102"}`)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		mu.Lock()
		returned, enough = 0, make(chan struct{})
		mu.Unlock()
		r := l.start(t)
		takes := task{Endpoints: []string{strings.TrimPrefix(server.URL, "http://")}, Options: options{TimeoutMs: forever, TryTimeoutMs: forever}}
		for i := range tags {
			takes.Calls = append(takes.Calls, call{Call: "hilo", Args: args{Tag: fmt.Sprint("tag", i)}})
		}
		var got []outcome
		r.task(t, takes)
		r.answer(t, &got)
		mu.Lock()
		defer mu.Unlock()
		if len(got) != tags || returned != tags {
			t.Errorf("%d calls, %d ranges returned", len(got), returned)
		}
	})
}

// answering is the handler of a node that answers a call with bytes of the test's own, and then waits
// for the client to leave. The last of them may come again and again.
func answering(again bool, first, last string) http.HandlerFunc {
	return greeting(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, err = io.WriteString(conn, first+last)
		for again && err == nil {
			_, err = io.WriteString(conn, last)
		}
		_, _ = io.Copy(io.Discard, conn)
	})
}

// TestAnEndlessAnswerIsGivenUp has a node that answers without a pause and without an end. The time of
// a call may be over before it is connected: such a call is made again.
func TestAnEndlessAnswerIsGivenUp(t *testing.T) {
	endpoints := map[string]string{}
	for name, answer := range map[string][2]string{
		"a line":        {"HTTP/1.1 200 ", strings.Repeat("a", 8192)},
		"headers":       {"HTTP/1.1 200 OK\r\n", strings.Repeat("a: b\r\n", 1000)},
		"announcements": {"", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 1000)},
		"chunks":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "2000\r\n" + strings.Repeat("a", 8192) + "\r\n"},
		"a body":        {"HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("a", 8192)},
	} {
		server := httptest.NewServer(answering(true, answer[0], answer[1]))
		t.Cleanup(server.Close)
		endpoints[name] = strings.TrimPrefix(server.URL, "http://")
	}
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		for name, endpoint := range endpoints {
			got := r.untilFailedAs(t, task{
				Endpoints: []string{endpoint}, Options: options{TimeoutMs: 500},
				Calls: []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
			}, failure{Type: "OutcomeUnknown"})
			if !failedAs(got, failure{Type: "OutcomeUnknown"}) {
				t.Errorf("%s: the call ended with %+v", name, got)
			}
		}
	})
}

// TestWhatFollowsAnAnswerIsNone has a node that answers a call twice. The second answer is not that
// of the next call on the connection.
func TestWhatFollowsAnAnswerIsNone(t *testing.T) {
	first := fmt.Sprintf("HTTP/1.1 200 OK\r\n%s: c\r\nContent-Length: %d\r\n\r\n%s", service.ClusterIDHeader, len(seven), seven)
	server := httptest.NewServer(answering(false, first, strings.ReplaceAll(first, `"7"`, `"8"`)))
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		next := call{Call: "identity.next", Args: args{Name: "invoices"}}
		var got []outcome
		r.task(t, task{Endpoints: []string{strings.TrimPrefix(server.URL, "http://")}, Calls: []call{next, next}})
		r.answer(t, &got)
		if want := []outcome{{Values: []string{"7"}}, {Values: []string{"7"}}}; !reflect.DeepEqual(got, want) {
			t.Errorf("the calls ended with %+v", got)
		}
	})
}

// TestAllAddressesOfANameAreTried has a name of two addresses, at the first of which nobody listens.
func TestAllAddressesOfANameAreTried(t *testing.T) {
	server := httptest.NewServer(greeting(giveSeven))
	t.Cleanup(server.Close)
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.2 nodes\n127.0.0.1 nodes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JAVA_TOOL_OPTIONS", "-Djdk.net.hosts.file="+hosts)
	t.Run("java", func(t *testing.T) {
		languages[2].need(t)
		r := languages[2].start(t)
		var got []outcome
		r.task(t, task{
			Endpoints: []string{strings.Replace(server.URL, "http://127.0.0.1", "nodes", 1)},
			Calls:     []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
		})
		r.answer(t, &got)
		if want := []outcome{{Values: []string{"7"}}}; !reflect.DeepEqual(got, want) {
			t.Errorf("the call ended with %+v", got)
		}
	})
}
