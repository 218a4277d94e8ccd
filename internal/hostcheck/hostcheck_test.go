package hostcheck

import (
	"crypto/tls"
	"net/http"
	"testing"
)

// TestForeign: a host name is foreign unless it can only be the cluster's.
func TestForeign(t *testing.T) {
	members := func() []string { return []string{"a.example:7402", "B.Example:7400", "", "c:7402"} }
	for host, want := range map[string]string{
		"localhost:7402": "", "LOCALHOST": "", "127.0.0.1:7402": "", "[::1]:7402": "", "[2001:db8::1]": "", "192.0.2.1": "", "": "",
		"c:7402": "", "node.localhost": "", "a.example:1": "", "A.Example": "", "b.example": "",
		"evil.example": "evil.example", "Evil.Example:7402": "evil.example", "c.example:7402": "c.example",
		"127.0.0.1.evil.example:7402": "127.0.0.1.evil.example", "localhost.evil.example": "localhost.evil.example",
		"a.example.evil.example": "a.example.evil.example", "evil.example.": "evil.example.",
	} {
		if got := Foreign(&http.Request{Host: host}, members); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
		if got := Foreign(&http.Request{Host: host, TLS: &tls.ConnectionState{}}, members); got != "" {
			t.Errorf("%s over TLS: %q", host, got)
		}
	}
}
