package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	one   = `{"kind":"next","name":"orders","call":0,"return":1,"outcome":"ok","blocks":[[1,1]]}` + "\n"
	two   = `{"kind":"next","name":"orders","call":2,"return":3,"outcome":"ok","blocks":[[2,2]]}` + "\n"
	again = `{"kind":"next","client":7,"name":"orders","call":4,"return":5,"outcome":"ok","blocks":[[2,2]]}` + "\n"
)

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, history string
		flags         []string
		code          int
		says          []string
	}{
		{"right", one + two, nil, right, []string{"2 operations: 2 identity values (0 holes)", "no violation"}},
		{"wrong", one + two + again, nil, wrong, []string{
			"VIOLATION identities/twice: default/orders: 2 to 2 and 2 to 2 were both handed out", `    3: {"kind":"next","client":7,`, "    2: {", "violations",
		}},
		{"no history", one + "x\n", nil, unusable, []string{"line 2"}},
		{"too long", one + two, []string{"--longest", "0s"}, right, []string{"longest 0s"}},
		{"no such flag", one, []string{"--x"}, unusable, []string{"-lease"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "history.jsonl")
			if err := os.WriteFile(file, []byte(c.history), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if code := run(append(c.flags, file), nil, &out, &out); code != c.code {
				t.Errorf("ended with %d, want %d", code, c.code)
			}
			for _, want := range c.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("does not say %q:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestStandardInput(t *testing.T) {
	var out strings.Builder
	if code := run([]string{"-"}, strings.NewReader(one+one), &out, &out); code != wrong {
		t.Errorf("ended with %d:\n%s", code, out.String())
	}
}

func TestNoFile(t *testing.T) {
	var out strings.Builder
	if code := run([]string{filepath.Join(t.TempDir(), "none")}, nil, &out, &out); code != unusable {
		t.Errorf("ended with %d:\n%s", code, out.String())
	}
	if code := run(nil, nil, &out, &out); code != unusable {
		t.Errorf("ended with %d without a file", code)
	}
}
