package dialcause

import "testing"

func TestCauses(t *testing.T) {
	desc := `connection error: desc = "transport: `
	for text, want := range map[string][2]string{
		desc + `Error while dialing: dial tcp 10.0.0.1:7400: i/o timeout"`: {"dial tcp 10.0.0.1:7400: i/o timeout", "i/o timeout"},
		desc + `Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: {
			"dial tcp 127.0.0.1:1: connect: connection refused", "connection refused",
		},
		desc + `Error while dialing: dial tcp: lookup b.local on 10.0.0.9:53: no such host"`: {
			"dial tcp: lookup b.local on 10.0.0.9:53: no such host", "no such host",
		},
		desc + `error reading server preface: EOF"`:    {"error reading server preface: EOF", "error reading server preface: EOF"},
		"name resolver error: produced zero addresses": {"no such host", "no such host"},
		"write tcp [::1]:1: broken pipe":               {"write tcp [::1]:1: broken pipe", "write tcp [::1]:1: broken pipe"},
		"the node stops":                               {"the node stops", "the node stops"},
	} {
		if got := [2]string{Of(text), Short(text)}; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
