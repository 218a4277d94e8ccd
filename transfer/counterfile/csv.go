package counterfile

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// columns is the first line of a CSV, and guardedColumns that of a CSV in which an apostrophe
// precedes a text that a spreadsheet would evaluate as a formula.
var (
	columns        = []string{"database", "kind", "name", "value"}
	guardedColumns = []string{"database", "kind", "guarded name", "value"}
)

// ReadCSV reads a CSV: a line that names the columns database, kind, name and value, in this order, and
// then a line for each counter. A claim has no value. If the first line marks names as guarded, the
// apostrophe is removed; in any other file it is part of the name.
func ReadCSV(r io.Reader, each Each) error {
	in := csv.NewReader(&quotedLineEnds{in: bufio.NewReader(r)})
	in.FieldsPerRecord = len(columns)
	in.ReuseRecord = true
	head, err := in.Read()
	if err != nil && !errors.Is(err, csv.ErrFieldCount) {
		return badForm("it has no first line: %v", err)
	}
	head[0] = strings.TrimPrefix(head[0], "\ufeff") // Some programs put it before everything.
	isGuarded := slices.Equal(head, guardedColumns)
	if !isGuarded && !slices.Equal(head, columns) {
		return badForm("its first line must be %s, with commas", strings.Join(columns, ","))
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return badForm("%v", err)
		}
		for i, cell := range row {
			if line, column := in.FieldPos(i); !utf8.ValidString(cell) {
				return badForm("line %d, column %d: the text is not UTF-8; save the file as CSV UTF-8", line, column)
			}
		}
		if isGuarded {
			row[0], row[2] = unguarded(row[0]), unguarded(row[2])
		}
		c, err := counterOf(row)
		if err != nil {
			line, _ := in.FieldPos(0)
			return badForm("line %d: %v", line, err)
		}
		if err := each(c); err != nil {
			return err
		}
	}
}

// quotedLineEnds doubles the carriage return of each line end within quotes. Package csv drops a
// carriage return, and a name that has it would become another.
type quotedLineEnds struct {
	in            *bufio.Reader
	quoted, again bool
}

func (q *quotedLineEnds) Read(p []byte) (n int, err error) {
	for n < len(p) {
		c := byte('\r')
		if !q.again {
			if c, err = q.in.ReadByte(); err != nil {
				return n, err
			}
			q.quoted = q.quoted != (c == '"')
		}
		q.again = c == '\r' && !q.again && q.quoted && q.lineEnds()
		p[n] = c
		n++
	}
	return n, nil
}

func (q *quotedLineEnds) lineEnds() bool {
	next, err := q.in.Peek(1)
	return err == nil && next[0] == '\n'
}

func counterOf(row []string) (Counter, error) {
	c := Counter{Database: row[0], Kind: CounterKind(strings.ToLower(row[1])), Name: row[2]}
	switch c.Kind {
	case Claim:
		if row[3] != "" {
			return c, errors.New("a claim has no value")
		}
	case Identity, DeletedIdentity, HiLo:
		var err error
		if c.Value, err = strconv.ParseInt(row[3], 10, 64); err != nil {
			return c, errors.New("the value " + strconv.Quote(row[3]) + " is not a whole number of 64 bits")
		}
	default:
		return c, errors.New("there is no kind " + strconv.Quote(row[1]) + ", only identity, deleted-identity, hilo and claim")
	}
	switch {
	case c.Name == "":
		return c, errors.New("the name is empty")
	case c.Kind == HiLo && c.Value < 0:
		return c, errors.New("a HiLo counter is never negative")
	}
	return c, nil
}

// isFormula reports whether a spreadsheet would evaluate a text as a formula, apart from
// apostrophes before it. The wide signs are for spreadsheets in East Asian languages.
func isFormula(text string) bool {
	return strings.IndexAny(strings.TrimLeft(text, "'"), "=+-@＝＋－＠\t\r\n") == 0
}

// separator ends a cell in spreadsheets whose decimal sign is a comma, even within quotes.
const separator = ";"

// Guarded puts an apostrophe before text that a spreadsheet would evaluate, whether it separates
// cells by a comma or by the separator.
func Guarded(text string) string {
	return eachCell(text, func(cell string) string { return "'" + cell })
}

func unguarded(text string) string {
	return eachCell(text, func(cell string) string { return strings.TrimPrefix(cell, "'") })
}

// eachCell changes the cells of a text that a spreadsheet would take for formulas.
func eachCell(text string, change func(cell string) string) string {
	cells := strings.Split(text, separator)
	for i, cell := range cells {
		if isFormula(cell) {
			cells[i] = change(cell)
		}
	}
	return strings.Join(cells, separator)
}

// CSVWriter writes a CSV as ReadCSV reads it.
type CSVWriter struct{ w *csv.Writer }

// NewCSVWriter writes the first line.
func NewCSVWriter(w io.Writer) (*CSVWriter, error) {
	out := &CSVWriter{csv.NewWriter(w)}
	return out, out.w.Write(guardedColumns)
}

func (w *CSVWriter) Write(c Counter) error {
	value := strconv.FormatInt(c.Value, 10)
	if c.Kind == Claim {
		value = ""
	}
	return w.w.Write([]string{Guarded(c.Database), string(c.Kind), Guarded(c.Name), value})
}

// Close flushes the lines; the writer below stays open.
func (w *CSVWriter) Close() error {
	w.w.Flush()
	return w.w.Error()
}
