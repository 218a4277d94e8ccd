package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progressPause is between two lines of progress.
const progressPause = 2 * time.Second

// progress says on stderr how far long work has come: on a terminal in one line that changes, else a
// line at a time, so that it reads well in a log too. Short work says nothing.
type progress struct {
	w     io.Writer
	pause time.Duration
	next  time.Time
	// line is the format of a line, and clear takes back one of a terminal.
	line, clear string
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, pause: progressPause, line: "%s\n"}
	if isTerminal(w) {
		p.pause, p.line, p.clear = progressPause/10, "\r%-70s", "\r"+strings.Repeat(" ", 70)+"\r"
	}
	p.next = time.Now().Add(p.pause)
	return p
}

// say prints a line, unless the previous line is too new.
func (p *progress) say(format string, args ...any) {
	if now := time.Now(); now.After(p.next) {
		fmt.Fprintf(p.w, p.line, fmt.Sprintf(format, args...))
		p.next = now.Add(p.pause)
	}
}

// end takes back the line of a terminal.
func (p *progress) end() { fmt.Fprint(p.w, p.clear) }

// merged returns what says how many names of all were merged.
func (p *progress) merged(all int64) func(names int64) {
	return func(names int64) { p.say("%s %d of %d names merged", bar(names, all), names, all) }
}

// bar draws a part of a whole.
func bar(part, whole int64) string {
	const width = 20
	full := int(width * part / max(whole, 1))
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}
