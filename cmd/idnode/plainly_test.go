package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

// TestCommandLinesAreExplainedPlainly: nobody needs to know Go to read what is wrong.
func TestCommandLinesAreExplainedPlainly(t *testing.T) {
	for line, want := range map[string]string{
		"next users| --count many":                 "not a whole number",
		"next users| --count 99999999999999999999": "out of range",
		"cluster set-roles x --expected -1":        "not a whole number from 0 on",
		"identity seed users 1 --force=maybe":      "neither true nor false",
		"identity seed users -5":                   "put -- before the arguments",
		"identity seed users --force -12":          "-- users -12",
	} {
		got := command(t, strings.Fields(line)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "strconv") || strings.Contains(got.stderr, "shorthand") {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
}

// TestBuiltFrom: a program that no release named says what it was built from.
func TestBuiltFrom(t *testing.T) {
	settings := func(pairs ...string) (all []debug.BuildSetting) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return all
	}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3":                   {Main: debug.Module{Version: "v1.2.3"}},
		"devel":                    {Main: debug.Module{Version: "(devel)"}},
		"devel-0123456789ab":       {Settings: settings("vcs.revision", "0123456789abcdef", "vcs.modified", "false")},
		"devel-0123456789ab+dirty": {Main: debug.Module{Version: "(devel)"}, Settings: settings("vcs.revision", "0123456789abcdef", "vcs.modified", "true")},
	} {
		if got := builtFrom(info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
