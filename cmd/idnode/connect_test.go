package main

import "testing"

// TestDialCause: what is in the way is said without gRPC's words, and with what to try.
func TestDialCause(t *testing.T) {
	other := "; is this the gRPC port of a node, and does it want TLS (--tls-ca, --tls-cert, --tls-key)?"
	handshake := "authentication handshake failed: tls: first record does not look like a TLS handshake"
	desc := `connection error: desc = "transport: `
	for text, want := range map[string]string{
		desc + `Error while dialing: dial tcp 10.0.0.1:7400: i/o timeout"`: "dial tcp 10.0.0.1:7400: i/o timeout",
		desc + `error reading server preface: EOF"`:                        "error reading server preface: EOF" + other,
		"write tcp 127.0.0.1:1: write: broken pipe":                        "write tcp 127.0.0.1:1: write: broken pipe" + other,
		desc + handshake + `"`:                                             handshake + "; a node without TLS is called without --tls-ca, --tls-cert and --tls-key",
		"name resolver error: produced zero addresses":                     "no such host",
	} {
		if got := dialCause(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
