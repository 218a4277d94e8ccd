package hostcheck

import (
	"crypto/tls"
	"errors"
	"net/http"
	"testing"
)

// TestCheck: a host name is judged unless no foreign site can have it.
func TestCheck(t *testing.T) {
	refused := errors.New("refused")
	for host, want := range map[string]string{
		"localhost:7402": "", "LOCALHOST": "", "127.0.0.1:7402": "", "[::1]:7402": "", "[2001:db8::1]": "", "192.0.2.1": "", "": "",
		"c:7402": "c", "wpad": "wpad", "localhost.": "localhost.", "node.localhost": "", "mylocalhost": "mylocalhost",
		"a.example:1": "a.example", "A.Example": "a.example",
		"127.0.0.1.evil.example:7402": "127.0.0.1.evil.example", "localhost.evil.example": "localhost.evil.example",
		"a.example.evil.example": "a.example.evil.example", "evil.example.": "evil.example.",
	} {
		judged := ""
		judge := func(name string) error {
			judged = name
			return refused
		}
		if err := Check(&http.Request{Host: host}, judge); judged != want || (err != nil) != (want != "") {
			t.Errorf("%s: judged as %q, want %q: %v", host, judged, want, err)
		}
		if err := Check(&http.Request{Host: host, TLS: &tls.ConnectionState{}}, judge); err != nil {
			t.Errorf("%s over TLS: %v", host, err)
		}
	}
}
