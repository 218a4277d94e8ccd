package metrics

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func sameCaller(*http.Request) string { return "prometheus" }

// TestOneScrapeForEachCaller at a time: one that asks with many keeps no place from another.
func TestOneScrapeForEachCaller(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	names := func(r *http.Request) bool {
		if r.URL.RawQuery == "slow" {
			begun <- struct{}{}
			<-goOn
		}
		return true
	}
	mux := http.NewServeMux()
	New("").Handle(mux.Handle, names, func(r *http.Request) string { return r.Header.Get("Caller") }, anyHost, Health{})
	scrape := func(caller, how string) int {
		r := httptest.NewRequest(http.MethodGet, "/metrics?"+how, nil)
		r.Header.Set("Caller", caller)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code
	}
	first := make(chan int)
	go func() { first <- scrape("curious", "slow") }()
	<-begun
	for range 2 * maxScrapes {
		if got := scrape("curious", ""); got != http.StatusServiceUnavailable {
			t.Errorf("another scrape of one caller: %d", got)
		}
	}
	if got := scrape("prometheus", ""); got != http.StatusOK {
		t.Errorf("Prometheus: %d", got)
	}
	close(goOn)
	if got := <-first; got != http.StatusOK {
		t.Errorf("the first: %d", got)
	}
	if got := scrape("curious", ""); got != http.StatusOK {
		t.Errorf("afterwards: %d", got)
	}
}
