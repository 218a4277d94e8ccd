package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestConfirmation: a question is answered by a person with yes, or beforehand with
// --yes, and by nothing else.
func TestConfirmation(t *testing.T) {
	for _, tt := range []struct {
		name   string
		c      confirmation
		answer string
		done   bool
		code   int
	}{
		{"yes", confirmation{person: true}, "yes\n", true, exitOK},
		{"in capitals", confirmation{person: true}, " YES \n", true, exitOK},
		{"beforehand", confirmation{yes: true}, "", true, exitOK},
		{"no", confirmation{person: true}, "no\n", false, exitFailed},
		{"half a yes", confirmation{person: true}, "y\n", false, exitFailed},
		{"the end of the input", confirmation{person: true}, "", false, exitFailed},
		{"a pipe", confirmation{}, "yes\n", false, exitUsage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.in, tt.c.err = strings.NewReader(tt.answer), &strings.Builder{}
			err := tt.c.ask("Removes all.")
			if (err == nil) != tt.done || exitCode(err) != tt.code {
				t.Errorf("%v, exit code %d, want done %t and exit code %d", err, exitCode(err), tt.done, tt.code)
			}
			if err != nil && (!strings.Contains(err.Error(), "nothing was done") || !strings.Contains(err.Error(), "--yes")) {
				t.Errorf("%q does not say that nothing was done, and what to say", err)
			}
		})
	}
	t.Run("Ctrl-C", func(t *testing.T) {
		unanswered, w := io.Pipe()
		defer w.Close()
		ctx, end := context.WithCancel(t.Context())
		end()
		c := confirmation{person: true, in: &input{ctx, unanswered}, err: io.Discard}
		if err := c.ask("Removes all."); !errors.Is(err, errNotConfirmed) {
			t.Error(err)
		}
		var stderr strings.Builder
		code := run(ctx, []string{"backup", "inspect", "-"}, unanswered, io.Discard, &stderr, nil)
		if code != exitFailed || stderr.String() != "idnode: CANCELLED: interrupted\n" {
			t.Errorf("a file from the standard input: exit code %d, %s", code, stderr.String())
		}
	})
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer w.Close()
	if isTerminal(pipe) {
		t.Error("a pipe counts as a terminal")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) {
		t.Errorf("%s counts as a terminal", os.DevNull)
	}
	// A new pseudo terminal, where the machine has them.
	if terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err == nil {
		defer terminal.Close()
		if !isTerminal(terminal) {
			t.Error("a terminal does not count as one")
		}
	}
	if isTerminal(strings.NewReader("yes")) {
		t.Error("a string counts as a terminal")
	}
}

// TestProgressSaysHowFarItIs of how much.
func TestProgressSaysHowFarItIs(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out)
	p.next = time.Time{}
	p.merged(7)(3)
	p.merged(7)(4) // Too soon after the line before.
	p.end()
	if out.String() != "[########............] 3 of 7 names merged\n" {
		t.Errorf("%q", out.String())
	}
}

// TestTextThatIsNotUTF8 is refused before anything is sent.
func TestTextThatIsNotUTF8(t *testing.T) {
	for _, line := range []string{
		"identity seed M\xfcller 5", "claim M\xfcller", "hilo next M\xfcller", "series take M\xfcller --key 1",
		"series take invoices --key M\xfcller", "next x| --database M\xfcller",
	} {
		node := newFakeNode(t, answer(nil))
		got := command(t, append(strings.Fields(line), "--endpoint", node.addr)...)
		if got.code != exitUsage || !strings.HasPrefix(got.stderr, "idnode: INVALID_NAME: ") || len(node.requests()) > 0 {
			t.Errorf("%q: %+v, %v", line, got, node.requests())
		}
	}
}

// TestWhatChangesNothingSaysSo: a seed below the value, and a name that is an id already.
func TestWhatChangesNothingSaysSo(t *testing.T) {
	for line, want := range map[string]string{
		"identity seed users 5":        "not set: the value is above 5 already",
		"identity seed users 15":       "",
		"next invoices":                `this id is "invoices" itself, as given; ask for "invoices|" to get a number`,
		"next invoices --separator .":  `ask for "invoices|"`,
		"next in.voices --separator .": "",
		"next invoices --claim":        "",
		"next in/voices":               "",
	} {
		node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
			if _, ok := req.(*idnodev1.SeedIdentityRequest); ok {
				return &idnodev1.SeedIdentityResponse{Value: 15}, nil
			}
			return &idnodev1.GenerateResponse{Ids: []string{"x"}}, nil
		})
		node.applied = 1
		got := command(t, append(strings.Fields(line), "--endpoint", node.addr)...)
		if got.code != exitOK || (want == "") != (got.stderr == "") || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
}

// TestSeedingDownAsks, and only that: a value that rises harms nobody.
func TestSeedingDownAsks(t *testing.T) {
	for _, tt := range []struct {
		value, force string
		asks         bool
	}{
		{"4", "--force", true},
		{"5", "--force", false},
		{"6", "--force", false},
		{"4", "--force=false", false},
		{"4", "--force --yes", false},
	} {
		seeds := 0
		node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
			if _, ok := req.(*idnodev1.GetIdentityRequest); ok {
				return &idnodev1.GetIdentityResponse{Identity: &idnodev1.Identity{Name: "users", Value: 5}}, nil
			}
			seeds++
			return &idnodev1.SeedIdentityResponse{Value: 4}, nil
		})
		node.applied = 1
		got := command(t, strings.Fields("identity seed users "+tt.value+" "+tt.force+" --endpoint "+node.addr)...)
		if asked := got.code == exitUsage && strings.Contains(got.stderr, "say --yes"); asked != tt.asks || (seeds == 0) != tt.asks {
			t.Errorf("%s %s: %+v, %d seeds, want a question: %t", tt.value, tt.force, got, seeds, tt.asks)
		}
	}
}
