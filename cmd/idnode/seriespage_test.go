package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// shellWord is a word of a command line, or one in quotes, which has no others in it.
var shellWord = regexp.MustCompile(`'[^']*'|[^\s']+`)

var resets = map[string]format.Reset{
	"": format.ResetNever, "year": format.ResetYear, "day": format.ResetDay, "fiscal-year": format.ResetFiscalYear,
}

// defined is a format of the page, and when its numbers begin again.
var defined = regexp.MustCompile(`--format '([^']+)'(?: --reset-by ([a-z-]+))?`)

// begun is where a scope of the page begins.
var begun = regexp.MustCompile(`--begin ([^= ]+)=([0-9]+)`)

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

// TestSeriesPageTexts: a take of the page gives the texts that the page shows. Where it
// names no date the present one is of 2026.
func TestSeriesPageTexts(t *testing.T) {
	all, takes := map[string]*series.Series{}, 0
	lines := strings.Split(seriesPage(t), "\n")
	for i, line := range lines {
		rest, ok := strings.CutPrefix(line, "$ idnode series ")
		if !ok {
			continue
		}
		words := shellWord.FindAllString(rest, -1)
		switch name := words[1]; words[0] {
		case "define":
			m := defined.FindStringSubmatch(line)
			var begins []*raftlogv1.SeriesBegin
			for _, b := range begun.FindAllStringSubmatch(line, -1) {
				scope, _ := parseScope(b[1])
				first, _ := strconv.ParseInt(b[2], 10, 64)
				begins = append(begins, &raftlogv1.SeriesBegin{Scope: scope, First: first})
			}
			s, err := series.New(series.Definition{Format: m[1], Reset: resets[m[2]]}, begins...)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			s.Scramble(nil) // The page has the texts of no secret.
			all[name] = s
		case "allot":
			if err := all[name].Allot(1, allotmentOf(t, words[2:])); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		case "take":
			takes++
			numbers, err := all[name].Take(time.Date(2026, time.November, 26, 12, 0, 0, 0, time.UTC).UnixNano(), takeOf(t, words[2:]))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			for j, n := range numbers {
				if shown := lines[i+1+j]; shown != n.Text {
					t.Errorf("%s: %s is shown, not %s", line, shown, n.Text)
				}
			}
		}
	}
	if takes < 8 {
		t.Errorf("the page has %d takes", takes)
	}
}

// allotmentOf reads the scope and the flags of an allotment.
func allotmentOf(t *testing.T, words []string) *raftlogv1.SeriesAllot {
	t.Helper()
	scope, err := parseScope(words[0])
	if err != nil {
		t.Fatal(err)
	}
	a := &raftlogv1.SeriesAllotment{}
	for flag := range slices.Chunk(words[1:], 2) {
		switch number, _ := strconv.ParseInt(flag[1], 10, 64); flag[0] {
		case "--from":
			a.From = number
		case "--to":
			a.To = number
		}
	}
	return &raftlogv1.SeriesAllot{Scope: scope, Allotment: a}
}

// takeOf reads the flags of a take, whose values are in the order of the format.
func takeOf(t *testing.T, words []string) *raftlogv1.SeriesTake {
	t.Helper()
	q := &raftlogv1.SeriesTake{}
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "--yes" })
	for flag := range slices.Chunk(words, 2) {
		switch flag[0] {
		case "--number":
			q.Number, _ = strconv.ParseInt(flag[1], 10, 64)
		case "--because":
			q.Because = strings.Trim(flag[1], "'")
		case "--key":
			q.Keys = append(q.Keys, flag[1])
		case "--value":
			_, value, _ := strings.Cut(flag[1], "=")
			q.Values = append(q.Values, value)
		case "--date":
			date, err := format.ParseDate(flag[1])
			if err != nil {
				t.Fatal(err)
			}
			q.Date = proto.Int32(int32(date))
		}
	}
	return q
}
