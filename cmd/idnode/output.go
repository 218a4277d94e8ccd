package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

// printer writes a command's result. Its methods keep the first error for flush, as bufio does.
type printer struct {
	w    *bufio.Writer
	json bool
	// wide asks for all columns of a table.
	wide bool
	// colour says that a person reads tables in colour.
	colour bool
	err    error
}

func newPrinter(w io.Writer, format string) (*printer, error) {
	switch format {
	case "text", "wide", "json":
		return &printer{w: bufio.NewWriterSize(w, 64<<10), json: format == "json", wide: format == "wide"}, nil
	default:
		return nil, fmt.Errorf("--output must be text, wide or json, not %q", format)
	}
}

func (p *printer) flush() error {
	if p.err != nil {
		return p.err
	}
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

// result prints m as one line of JSON, or by text.
func (p *printer) result(m proto.Message, text func(w io.Writer)) {
	if p.json {
		p.object(m)
	} else {
		text(p.w)
	}
}

// answer is result, unless the call that gave m failed.
func (p *printer) answer(failed error, m proto.Message, text func(w io.Writer)) error {
	if failed == nil {
		p.result(m, text)
	}
	return failed
}

// value prints m as JSON, or just v, unless the call that gave them failed.
func (p *printer) value(failed error, m proto.Message, v any) error {
	return p.answer(failed, m, func(w io.Writer) { fmt.Fprintln(w, v) })
}

// object prints m as one line of JSON with zero values, so that a script finds every field.
// protojson varies its spaces on purpose; compacting undoes that.
func (p *printer) object(m proto.Message) { p.led("", m) }

// ofNode is result for what one node says; its tag is the first field.
func (p *printer) ofNode(tag string, m proto.Message, text func(w io.Writer)) {
	if p.json {
		p.led(fmt.Sprintf(`"nodeTag":%q,`, tag), m)
	} else {
		text(p.w)
	}
}

// led prints an object that has the fields of m behind the first ones. m has a field itself.
func (p *printer) led(first string, m proto.Message) {
	raw, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		p.fail(err)
		return
	}
	var line bytes.Buffer
	_ = json.Compact(&line, raw) // It is JSON.
	p.line("{" + first + line.String()[1:])
}

// alone prints a value that the API has no message for: as JSON, an object with this field.
func (p *printer) alone(field, text string) {
	if p.json {
		object, _ := json.Marshal(map[string]string{field: text}) // Texts always have a form.
		text = string(object)
	}
	p.line(text)
}

// line prints a line for terminals; JSON has the same value as before. Each write has whole lines:
// what is left of an id when a command is interrupted would be another id.
func (p *printer) line(text string) {
	text = docid.Escape(text) + "\n"
	if len(text) > p.w.Available() {
		_ = p.w.Flush() // The last flush has its error.
	}
	_, _ = p.w.WriteString(text)
}

// fail keeps err, if it is the first that is not nil.
func (p *printer) fail(err error) { p.err = cmp.Or(p.err, err) }

// blocks prints every id of the blocks, one a line, until ctx ends.
func (p *printer) blocks(ctx context.Context, blocks []*idnodev1.IdBlock) {
	for _, b := range blocks {
		for n := b.GetFirst(); n <= b.GetLast(); n++ {
			if err := ctx.Err(); err != nil {
				p.fail(err)
				return
			}
			p.line(fmt.Sprintf("%s%0*d%s", b.GetPrefix(), int(b.GetWidth()), n, b.GetSuffix()))
			if n == b.GetLast() {
				// n++ would overflow at the end of int64.
				break
			}
		}
	}
}

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
