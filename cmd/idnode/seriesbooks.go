package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// booksColumns is the first line of a file that says what the books have.
var booksColumns = []string{"number", "key"}

// parseBooks reads such a file: a line for each number of a scope, without a key if no
// document has it.
func parseBooks(r io.Reader) (numbers []*idnodev1.ReconciledNumber, err error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord, in.ReuseRecord = len(booksColumns), true
	head, err := in.Read()
	if err != nil && !errors.Is(err, csv.ErrFieldCount) {
		return nil, fmt.Errorf("it has no first line: %w", err)
	}
	head[0] = strings.TrimPrefix(head[0], "\ufeff") // Some programs put it before everything.
	if !slices.Equal(head, booksColumns) {
		return nil, errors.New("its first line must be number,key, with a comma")
	}
	lines := map[int64]int{}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return numbers, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(0)
		n, err := strconv.ParseInt(row[0], 10, 64)
		switch {
		case err != nil || n < 1:
			return nil, fmt.Errorf("line %d: %q is no number from 1 on", line, row[0])
		case lines[n] > 0:
			return nil, fmt.Errorf("line %d: number %d is in line %d too", line, n, lines[n])
		case !utf8.ValidString(row[1]):
			return nil, fmt.Errorf("line %d: the key is no UTF-8", line)
		}
		lines[n] = line
		numbers = append(numbers, &idnodev1.ReconciledNumber{Number: n, Key: row[1]})
	}
}
