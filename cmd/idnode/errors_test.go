package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandLinesAreExplainedPlainly: nobody needs to know Go to read what is wrong.
func TestCommandLinesAreExplainedPlainly(t *testing.T) {
	for line, want := range map[string]string{
		"next users| --count many":                 "not a whole number",
		"next users| --count 99999999999999999999": "out of range",
		"next users| --timeout 5":                  "not a duration such as 500ms or 2s",
		"next users| --timeout soon":               "not a duration such as 500ms or 2s",
		"cluster join-token --for 2days":           "not a duration such as 500ms or 2s",
		"identity seed users 99999999999999999999": "must be from -9223372036854775808 to 9223372036854775807",
		"cluster set-roles x --expected -1":        "not a whole number from 0 on",
		"identity seed users 1 --force=maybe":      "neither true nor false",
		"identity seed users -5":                   "put -- before the arguments",
		"next -a|":                                 "there is no flag -a; if -a| is a value, put -- before the arguments",
		"identity seed users --force -12":          "-- users -12",
	} {
		got := command(t, strings.Fields(line)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "strconv") ||
			strings.Contains(got.stderr, "time:") || strings.Contains(got.stderr, "shorthand") {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
}

// TestFilesAreExplainedPlainly: the same of a file of roles.
func TestFilesAreExplainedPlainly(t *testing.T) {
	for text, want := range map[string]string{
		"roles:\n  - grnts: []":   "line 2: there is no key grnts",
		"roles: 5":                "line 1: the value `5` is of another kind",
		"roles:\n  - name: [x]":   "line 2: the value is of another kind",
		"roles: []\nlimits: [a: ": "line 2: did not find",
		"no roles at all\n":       "line 1: the value `no role...` is of another kind",
	} {
		file := filepath.Join(t.TempDir(), "roles.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := command(t, "cluster", "set-roles", file)
		if got.code != exitUsage || !strings.Contains(got.stderr, file+": "+want) || strings.Contains(got.stderr, "main.") {
			t.Errorf("%q: %+v, want %q", text, got, want)
		}
	}
}
