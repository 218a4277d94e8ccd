package main

import (
	"io"
	"regexp"
	"strings"
)

// paints are what stands out in tables and lists of fields, and the colours of it.
var paints = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?m)^[A-Z]+(?: +[A-Z]+)*$`), "\x1b[1m${0}\x1b[m"},
	{regexp.MustCompile(`(?m)^(\S+ +)(leader)( |$)`), "${1}\x1b[32m${2}\x1b[m${3}"},
	{regexp.MustCompile(`(?m)(  )(no(?:, \w+)?|full|slow)(  |$)`), "${1}\x1b[31m${2}\x1b[m${3}"},
	{regexp.MustCompile(`(?m)^warning .*$`), "\x1b[33m${0}\x1b[m"},
}

// paint colours what stands out in a text.
func paint(text string) string {
	for _, p := range paints {
		text = p.what.ReplaceAllString(text, p.with)
	}
	return text
}

// mayPaint says whether the standard output has colours: only at a terminal that has them, and
// unless NO_COLOR is set (https://no-color.org).
func (a *app) mayPaint() bool {
	return a.toTerminal && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// painted draws a table, in colour if that is asked for.
func (p *printer) painted(draw func(w io.Writer)) {
	if !p.colour {
		draw(p.w)
		return
	}
	var b strings.Builder
	draw(&b)
	_, _ = p.w.WriteString(paint(b.String())) // flush has its error.
}
