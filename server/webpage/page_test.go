package webpage

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/server/httpapi"
)

// TestAssets: every file is there under its type, with the headers that bind the
// browser, and is asked for again only if it has changed.
func TestAssets(t *testing.T) {
	s := newWorld(t).newServer(httpapi.Config{})
	paths := map[string]string{"/": contentTypes[".html"]}
	for _, name := range assetNames(t) {
		if name != "index.html" {
			paths["/page/assets/"+name] = contentTypes[path.Ext(name)]
		}
	}
	for target, kind := range paths {
		w := send(s, http.MethodGet, target, "")
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != kind || kind == "" {
			t.Errorf("%s: %d, %q, want %q", target, w.Code, w.Header().Get("Content-Type"), kind)
		}
		wantHeaders(t, target, w.Header())
		again := send(s, http.MethodGet, target, "", "If-None-Match", w.Header().Get("ETag"))
		if again.Code != http.StatusNotModified {
			t.Errorf("%s: %d for an etag that is the newest", target, again.Code)
		}
	}
}

func wantHeaders(t *testing.T, target string, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if h.Get(name) != want {
			t.Errorf("%s: %s is %q, want %q", target, name, h.Get(name), want)
		}
	}
}

// TestPolicy: nothing may come from elsewhere, or stand in the text.
func TestPolicy(t *testing.T) {
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
		"form-action 'none'",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy has no %s", want)
		}
	}
	for _, bad := range []string{"unsafe", "*", "http", "data:"} {
		if strings.Contains(policy, bad) {
			t.Errorf("the policy has %q", bad)
		}
	}
}

// reference is what an asset loads, or another place.
var reference = regexp.MustCompile(`(?:from|import) "([^"]+)"|(?:src|href)="([^"]+)"|(https?://[^\s"'<>)]+)|url\(([^)]+)\)`)

// TestAssetsReferToThemselvesOnly: every reference is to another of the files.
func TestAssetsReferToThemselvesOnly(t *testing.T) {
	known := map[string]bool{}
	for _, name := range assetNames(t) {
		known[name] = true
	}
	for name := range known {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range reference.FindAllStringSubmatch(string(text), -1) {
			target := strings.Join(match[1:], "")
			switch {
			case strings.HasPrefix(target, "#"), target == "http://www.w3.org/2000/svg":
			case !known[strings.TrimPrefix(strings.TrimPrefix(target, "./"), "page/assets/")]:
				t.Errorf("%s refers to %s", name, target)
			}
		}
		for _, bad := range []string{"innerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=\"", "<style", "onclick="} {
			if strings.Contains(string(text), bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
	}
}

func assetNames(t *testing.T) []string {
	t.Helper()
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// TestForeignPages: what another page makes a browser send is refused. Nothing of the page
// changes anything; the tests of package jsonapi say the same of what does.
func TestForeignPages(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	tests := map[string]struct {
		headers []string
		status  int
	}{
		"another site":             {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another site, as JSON":    {[]string{"Sec-Fetch-Site", "cross-site", "Content-Type", "application/json"}, 403},
		"another port":             {[]string{"Sec-Fetch-Site", "same-site"}, 403},
		"an old browser":           {[]string{"Sec-Fetch-Site", "", "Origin", "http://evil.example"}, 403},
		"a file":                   {[]string{"Sec-Fetch-Site", "", "Origin", "null"}, 403},
		"a form":                   {[]string{"Sec-Fetch-Site", "", "Content-Type", "application/x-www-form-urlencoded"}, 415},
		"a form of text":           {[]string{"Sec-Fetch-Site", "", "Content-Type", "text/plain"}, 415},
		"no type":                  {[]string{"Sec-Fetch-Site", "", "Content-Type", ""}, 415},
		"a beacon":                 {[]string{"Sec-Fetch-Site", "", "Content-Type", "text/plain;charset=UTF-8"}, 415},
		"a name that leads here":   {[]string{"Host", "evil.example:7402"}, 403},
		"such a name, with itself": {[]string{"Host", "evil.example:7402", "Origin", "http://evil.example:7402"}, 403},
	}
	for name, tt := range tests {
		if got := send(s, http.MethodPost, api+"backup", `{}`, tt.headers...); got.Code != tt.status {
			t.Errorf("%s: %d %s, want %d", name, got.Code, got.Body, tt.status)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodHead, http.MethodOptions} {
		if got := send(s, method, api+"backup", `{}`, "Content-Type", "application/json"); got.Code < 400 || len(got.Header()["Access-Control-Allow-Origin"]) > 0 {
			t.Errorf("%s: %d %v", method, got.Code, got.Header())
		}
	}
}

// TestHosts: the names under which the page answers.
func TestHosts(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	for host, want := range map[string]int{
		"localhost:7402": 200, "LOCALHOST": 200, "127.0.0.1:7402": 200, "[::1]:7402": 200, "[2001:db8::1]:7402": 200, "192.0.2.1": 200,
		"a:7402": 403, "wpad": 403, "node.localhost": 200, "a.example:7402": 200, "A.Example": 200, "ids.example": 200,
		"evil.example": 403, "b.example:7402": 403, "127.0.0.1.evil.example:7402": 403, "localhost.evil.example": 403,
		"a.example.evil.example": 403,
	} {
		if got := send(s, http.MethodGet, api+"overview", "", "Host", host); got.Code != want {
			t.Errorf("%s: %d, want %d", host, got.Code, want)
		}
	}
	w.known = nil
	for host, want := range map[string]int{"127.0.0.1:7402": 200, "ids.example": 200, "a.example:7402": 503, "evil.example": 503} {
		if got := send(s, http.MethodGet, api+"overview", "", "Host", host); got.Code != want {
			t.Errorf("while no member is known: %s: %d, want %d", host, got.Code, want)
		}
	}
}

// TestBodies: what is no body of the call is refused.
func TestBodies(t *testing.T) {
	s := newWorld(t).newServer(httpapi.Config{})
	for body, want := range map[string]int{
		"": 400, "{": 400, "[]": 400, `"x"`: 400, `{"consistency":"x"}`: 400, `{"more":2}`: 400, `{}{}`: 400, `{} x`: 400,
		`{"consistency":"` + strings.Repeat("x", 160<<10) + `"}`: 413,
		`{}` + strings.Repeat(" ", 160<<10):                      413,
	} {
		if got := send(s, http.MethodPost, api+"backup", body); got.Code != want {
			t.Errorf("%.60s: %d %s, want %d", body, got.Code, got.Body, want)
		}
	}
}

// TestSlowBody: a body that does not come ends with the server's bound.
func TestSlowBody(t *testing.T) {
	// The headers must be in time on a machine that stands still for a moment.
	s := &http.Server{Handler: newWorld(t).newServer(httpapi.Config{}), ReadTimeout: time.Second}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Close()
		<-served
	})
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %sbackup HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", api,
		listener.Addr())
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest || !answer.Close {
		t.Errorf("%d, closed %v", answer.StatusCode, answer.Close)
	}
}
