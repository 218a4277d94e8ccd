package node

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/test/tier"
)

// readAll writes raw bytes to a port and returns all that comes back until the
// node ends the connection, and how long that took.
func readAll(t *testing.T, address, text string) (answer string, took time.Duration) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return "", 0
	}
	defer conn.Close()
	begin := time.Now()
	_ = conn.SetDeadline(begin.Add(testTimeout))
	// The node may hang up before it has read everything.
	_, _ = io.WriteString(conn, text)
	all, err := io.ReadAll(conn)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the node keeps the connection after %.100q", all)
	}
	return string(all), time.Since(begin)
}

// TestSlowAndOversizedRequests: on both ports of a node, a slow request is cut off, and an
// oversized request gets an error. Others are served meanwhile.
func TestSlowAndOversizedRequests(t *testing.T) {
	tier.Long(t)
	c := configs(t, "A")["A"]
	c.Metrics = "127.0.0.1:0"
	n := run(t, c)
	const (
		get  = "GET /databases/default/stats HTTP/1.1\r\nHost: a\r\n"
		post = "POST /databases/default/identity/next?name=users HTTP/1.1\r\nHost: a\r\n"
		// headTime and bodyTime are above what the headers and all of a request may take, by
		// what a busy machine adds.
		headTime, bodyTime = 15 * time.Second, 20 * time.Second
	)
	tests := map[string]struct {
		sent, status string
		within       time.Duration
	}{
		"nothing":                {"", "", headTime},
		"headers that never end": {get + "X: y\r\n", "", headTime},
		"huge headers":           {get + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "HTTP/1.1 431 ", headTime},
		"a huge address":         {"GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 431 ", headTime},
		"a huge body":            {post + "Content-Length: 10000000000\r\n\r\n", "HTTP/1.1 413 ", headTime},
		"a body that comes in parts": {post + "Transfer-Encoding: chunked\r\n\r\n" +
			strings.Repeat("1000\r\n"+strings.Repeat("x", 0x1000)+"\r\n", 300), "", bodyTime},
		"a body that never comes":       {post + "Content-Length: 10\r\n\r\n", "", bodyTime},
		"a body of which one byte came": {post + "Content-Length: 10\r\n\r\nx", "", bodyTime},
	}
	// Side by side, because the slow ones take their time.
	var tried sync.WaitGroup
	for name, tt := range tests {
		for port, address := range map[string]string{"HTTP": n.HTTPAddr(), "metrics": n.MetricsAddr()} {
			tried.Go(func() {
				got, took := readAll(t, address, tt.sent)
				if !strings.HasPrefix(got, tt.status) || took > tt.within {
					t.Errorf("%s, %s: %.200q after %s, want %q within %s", port, name, got, took, tt.status, tt.within)
				}
			})
		}
	}
	n.url = "http://" + n.MetricsAddr()
	if status, body := n.get("/livez"); status != http.StatusOK {
		t.Errorf("meanwhile: %d %s", status, body)
	}
	tried.Wait()
}
