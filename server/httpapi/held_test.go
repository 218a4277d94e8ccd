package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/budget"
)

// slowReader is an answer that nobody reads before it is told to be.
type slowReader struct {
	*httptest.ResponseRecorder
	waits chan struct{}
	read  chan struct{}
}

func (r slowReader) Write(b []byte) (int, error) {
	if len(b) > 4<<10 {
		r.Flush()
	}
	return r.ResponseRecorder.Write(b)
}

func (r slowReader) Flush() {
	r.waits <- struct{}{}
	<-r.read
}

// TestUnreadAnswers: unread answers are counted until they are read. A
// caller is refused beyond its share; others are not.
func TestUnreadAnswers(t *testing.T) {
	b := budget.New(budget.Limits{Bytes: 2 << 20, Connections: 1})
	shop, books := b.Open("shop"), b.Open("books")
	conns := map[net.Conn]*budget.Connection{}
	conn := func(of *budget.Connection) context.Context {
		c, _ := net.Pipe()
		conns[c] = of
		return context.WithValue(t.Context(), connection{}, c)
	}
	ofShop, ofBooks := conn(shop), conn(books)
	s := newWorld(t).newServer("A", Config{Held: func(c net.Conn) *budget.Connection { return conns[c] }}, "")
	s.Handle("GET /some", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte(strings.Repeat("x", 100<<10))); err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	// ask says whether it was answered or begun to be, which is when it waits.
	read, ended := make(chan struct{}), make(chan int, 100)
	ask := func(ctx context.Context) bool {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/some", nil)
		w := slowReader{httptest.NewRecorder(), make(chan struct{}, 2), read}
		done := make(chan struct{})
		go func() {
			defer func() {
				if recover() != nil {
					w.Code = 0
				}
				ended <- w.Code
				close(done)
			}()
			s.ServeHTTP(w, r)
		}()
		select {
		case <-w.waits:
			return w.Code == http.StatusOK
		case <-done:
			return false
		}
	}
	n := 0
	for n < 100 && ask(ofShop) {
		n++
	}
	if n != 5 {
		t.Errorf("%d answers at once", n)
	}
	if !ask(ofBooks) {
		t.Error("another caller is refused")
	}
	close(read)
	for range n + 2 {
		<-ended
	}
	if b.Held() != 0 {
		t.Errorf("%d bytes are held when all was read", b.Held())
	}
}

// TestAnAnswerWithoutRoom: a call was made, and there is no room for its answer. It must
// not look like an empty answer, also if its handler takes no notice.
func TestAnAnswerWithoutRoom(t *testing.T) {
	b := budget.New(budget.Limits{Bytes: 2 << 20, Connections: 1})
	shop, others := b.Open("shop"), b.Open("others")
	defer others.Close()
	others.Unsent(2 << 20)
	s := newWorld(t).newServer("A", Config{Held: func(net.Conn) *budget.Connection { return shop }}, "")
	s.Handle("GET /some", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(make([]byte, 100<<10))
	}))
	served := httptest.NewUnstartedServer(s)
	served.Config.ConnContext = s.http.ConnContext
	served.Start()
	defer served.Close()
	answer, err := served.Client().Get(served.URL + "/some")
	if err == nil {
		answer.Body.Close()
		t.Errorf("status %d, length %d", answer.StatusCode, answer.ContentLength)
	}
}

// TestAListWithoutRoom: a page of names is counted before it is read, and a caller without
// room hears it as an answer.
func TestAListWithoutRoom(t *testing.T) {
	b := budget.New(budget.Limits{Bytes: 2 * listBytes, Connections: 1})
	shop := b.Open("shop")
	c, _ := net.Pipe()
	s := newWorld(t).newServer("A", Config{Held: func(net.Conn) *budget.Connection { return shop }}, "")
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), connection{}, c), http.MethodGet,
		"/databases/default/debug/identities", nil)
	r.Host = "127.0.0.1"
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), apierror.ReasonOverloaded) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if b.Held() != 0 {
		t.Errorf("%d bytes are held", b.Held())
	}
}

// TestRequestsInFlight: a request of whatever kind asks for a place among those of its caller;
// health does not.
func TestRequestsInFlight(t *testing.T) {
	b := budget.New(budget.Limits{Bytes: 2 << 20, Connections: 1, Calls: 2})
	shop := b.Open("shop")
	s := newWorld(t).newServer("A", Config{Held: func(net.Conn) *budget.Connection { return shop }}, "")
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/page/api/overview"} {
		s.Handle("GET "+path, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}
	ask := func(path string) int {
		c, _ := net.Pipe()
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), connection{}, c), http.MethodGet, path, nil)
		r.Host = "127.0.0.1"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	shop.Begin()
	for path, want := range map[string]int{
		"/livez": 200, "/readyz": 200, "/metrics": 503, "/page/api/overview": 503, "/databases/default/debug/identities": 503,
	} {
		if got := ask(path); got != want {
			t.Errorf("%s: %d while the caller has its share in flight", path, got)
		}
	}
	shop.End()
	for range 3 {
		if got := ask("/metrics"); got != 200 {
			t.Errorf("%d afterwards", got)
		}
	}
	if b.Held() != 0 {
		t.Errorf("%d bytes are held", b.Held())
	}
}
