package main

import (
	"strings"
	"testing"
)

// TestPaint: what stands out has a colour, and nothing else has.
func TestPaint(t *testing.T) {
	for text, want := range map[string]string{
		"TAG  ROLE":                   "<1>TAG  ROLE<>",
		"A    leader    yes      0":   "A    <32>leader<>    yes      0",
		"leader   A":                  "leader   A",
		"C    voter  no, 2s  -    -":  "C    voter  <31>no, 2s<>  -    -",
		"quorum   no":                 "quorum   <31>no<>",
		"quorum   yes":                "quorum   yes",
		"B    voter  yes  0  full  -": "B    voter  yes  0  <31>full<>  -",
		"warning  B is slow":          "<33>warning  B is slow<>",
	} {
		colours := strings.NewReplacer("\x1b[m", "<>", "\x1b[1m", "<1>", "\x1b[31m", "<31>", "\x1b[32m", "<32>", "\x1b[33m", "<33>")
		got := colours.Replace(paint(text))
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestMayPaint: colours are for terminals that have them, and people who want them.
func TestMayPaint(t *testing.T) {
	for _, tt := range []struct {
		terminal bool
		env      string
		want     bool
	}{
		{true, "TERM=xterm", true},
		{true, "NO_COLOR=", true},
		{true, "NO_COLOR=1", false},
		{true, "TERM=dumb", false},
		{false, "TERM=xterm", false},
	} {
		a := &app{toTerminal: tt.terminal, env: []string{tt.env}}
		if got := a.mayPaint(); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
