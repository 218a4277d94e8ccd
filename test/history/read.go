package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
)

// maxLine bounds a line: a call that took a million values comes in few blocks.
const maxLine = 16 << 20

// Read yields the operations of a history in the order of its lines, so that the
// n-th Op is line n. It ends with an error at the first line that is none.
func Read(r io.Reader) iter.Seq2[Op, error] {
	return func(yield func(Op, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 1<<20), maxLine)
		parser := parser{known: make(map[string]string)}
		n := 0
		for lines.Scan() {
			n++
			op, err := parser.parse(lines.Bytes())
			if err != nil {
				yield(Op{}, fmt.Errorf("history: line %d: %w", n, err))
				return
			}
			if !yield(op, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Op{}, fmt.Errorf("history: line %d: %w", n+1, err))
		}
	}
}

// Parse reads one line.
func Parse(line []byte) (Op, error) {
	p := parser{known: make(map[string]string)}
	return p.parse(line)
}

// parseAny reads one line with encoding/json, of any writer.
func parseAny(line []byte) (Op, error) {
	op := Op{Return: Never}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&op); err != nil {
		return Op{}, err
	}
	if dec.More() {
		return Op{}, fmt.Errorf("more than one value")
	}
	return op, nil
}
