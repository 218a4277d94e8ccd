package layering

import (
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is how long a line of Go is at most, and maxProse one of Markdown.
const maxColumns, maxProse = 140, 160

// maxWords is how many words README and the pages of docs have together.
const maxWords = 45_000

// TestLinesAreShort: a line that has text of several lines in it, as tests have, may be longer.
func TestLinesAreShort(t *testing.T) {
	walk(t, func(file string) {
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, ".pb.go") {
			return
		}
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(source, []byte("// Code generated ")) {
			return // As long as its generator writes it.
		}
		texts := linesOfTexts(source)
		for i, line := range strings.Split(string(source), "\n") {
			if utf8.RuneCountInString(line) > maxColumns && !texts[i+1] {
				t.Errorf("%s:%d has more than %d columns", file, i+1, maxColumns)
			}
		}
	})
}

// TestProseIsShort: a line of Markdown that is no table, code or comment has few columns, or is one word;
// the documents together have few words.
func TestProseIsShort(t *testing.T) {
	words := 0
	walk(t, func(file string) {
		if filepath.Ext(file) != ".md" || file == "docs/reference/cli.md" {
			return // Programs write these.
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if (file == "README.md" || strings.HasPrefix(file, "docs/")) && file != "docs/reference/configuration.md" {
			words += len(strings.Fields(string(text)))
		}
		code := false
		for i, line := range strings.Split(string(text), "\n") {
			trimmed := strings.TrimSpace(line)
			fence := strings.HasPrefix(trimmed, "```")
			code = code != fence
			free := code || fence || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "<!--")
			if utf8.RuneCountInString(line) > maxProse && !free && !isOneWord(trimmed) {
				t.Errorf("%s:%d has more than %d columns", file, i+1, maxProse)
			}
		}
	})
	if words > maxWords {
		t.Errorf("README and docs have %d words, more than %d", words, maxWords)
	}
}

// isOneWord: code and links are not divided.
func isOneWord(line string) bool {
	return strings.Count(line, "`") == 2 && line[0] == '`' || !strings.Contains(line, " ")
}

// linesOfTexts are the lines with a raw string, or with one that has a line feed in it.
func linesOfTexts(source []byte) map[int]bool {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		switch position, kind, text := s.Scan(); {
		case kind == token.EOF:
			return lines
		case kind == token.STRING && (text[0] == '`' || strings.Contains(text, `\n`)):
			for i := range strings.Count(text, "\n") + 1 {
				lines[file.Line(position)+i] = true
			}
		}
	}
}
