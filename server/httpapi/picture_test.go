package httpapi

import (
	"net/http"
	"testing"
)

// TestAPictureTakesNoRange: the one GET that changes something is refused where a page
// makes a browser send it as a picture, a frame, a link or a fetch, with what browsers of
// nodes without TLS say; programs are answered.
func TestAPictureTakesNoRange(t *testing.T) {
	w := newWorld(t)
	s := w.newServer("A", Config{}, "")
	const next = "/databases/default/hilo/next?tag=orders"
	const browser, mine = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "7.0.0"
	before := w.Index()
	for name, headers := range map[string][]string{
		"a picture":                    {"User-Agent", browser, "Accept", "image/avif,image/webp,image/*,*/*;q=0.8"},
		"a frame":                      {"User-Agent", browser, "Accept", "text/html,application/xhtml+xml", "Referer", "http://intranet/"},
		"a fetch without a referer":    {"User-Agent", browser, "Accept", "*/*"},
		"a browser of another name":    {"User-Agent", "Lynx/2.9", "Accept", "text/html, text/plain"},
		"a picture of such a one":      {"User-Agent", "", "Accept", "image/png"},
		"a link of such a one":         {"User-Agent", "", "Referer", "http://intranet/"},
		"a picture over TLS":           {"User-Agent", "", "Sec-Fetch-Dest", "image"},
		"a cross-site fetch over TLS":  {"User-Agent", "", "Sec-Fetch-Site", "cross-site"},
		"one that says a version, too": {"Sec-Fetch-Site", "cross-site", "Raven-Client-Version", mine},
	} {
		if got := do(s, http.MethodGet, next, headers...); got.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
	if got := w.Index() - before; got != 0 {
		t.Errorf("%d operations were proposed", got)
	}
	for name, headers := range map[string][]string{
		"curl":                          {"User-Agent", "curl/8.14.1", "Accept", "*/*"},
		"RavenDB's client":              {"User-Agent", "RavenDB.Client", "Raven-Client-Version", mine},
		"RavenDB's client in a browser": {"User-Agent", browser, "Raven-Client-Version", mine, "Accept", "text/html"},
		"RavenDB's client on Node":      {"User-Agent", "node", "Accept", "*/*", "Sec-Fetch-Mode", "cors", "Raven-Client-Version", mine},
		"a program without headers":     nil,
	} {
		if got := do(s, http.MethodGet, next, headers...); got.Code != http.StatusCreated {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
}
