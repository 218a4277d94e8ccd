package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/idnode/idnode/series/format"
)

// shellWord is a word of a command line, or one in quotes, which has no others in it.
var shellWord = regexp.MustCompile(`'[^']*'|[^\s']+`)

// defined is a format of the page, and when its numbers begin again.
var defined = regexp.MustCompile(`--format '([^']+)'(?: --reset-by ([a-z-]+))?`)

func seriesPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/series.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestSeriesPageCommands: the commands of the page are accepted, and ask a node.
func TestSeriesPageCommands(t *testing.T) {
	commands := 0
	for line := range strings.Lines(seriesPage(t)) {
		line, ok := strings.CutPrefix(line, "$ idnode ")
		if !ok {
			continue
		}
		commands++
		node := newFakeNode(t, answer(nil))
		var args []string
		for _, word := range shellWord.FindAllString(line, -1) {
			args = append(args, strings.Trim(word, "'"))
		}
		if got := command(t, append(args, "--endpoint", node.addr)...); got.code == exitUsage || len(node.requests()) != 1 {
			t.Errorf("%s: %+v, %d calls", line, got, len(node.requests()))
		}
	}
	if commands < 10 {
		t.Errorf("the page has %d commands", commands)
	}
}

// TestSeriesPageFormats: the formats of the page, and those of the help, can be defined.
func TestSeriesPageFormats(t *testing.T) {
	resets := map[string]format.Reset{
		"": format.ResetNever, "year": format.ResetYear, "day": format.ResetDay, "fiscal-year": format.ResetFiscalYear,
	}
	help := command(t, "series", "define", "--help").stdout
	found := defined.FindAllStringSubmatch(seriesPage(t)+help, -1)
	for _, m := range found {
		reset, ok := resets[m[2]]
		if _, err := format.Define(m[1], reset); err != nil || !ok {
			t.Errorf("%s: %v", m[0], err)
		}
	}
	if len(found) < 8 {
		t.Errorf("found %d formats", len(found))
	}
}
