// Package sizing reads the figures of docs/evidence/sizing.md, so that the tests of what is
// counted there have their bounds from the page, and the page cannot drift from them.
// It measures nothing itself.
package sizing

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Table is a table of the page: the figure of each row and column.
type Table map[string]map[string]float64

// Read returns the table of the page that has this head over its first column.
func Read(t testing.TB, head string) Table {
	t.Helper()
	table := parse(readPage(t), head)
	if len(table) == 0 {
		t.Fatalf("docs/evidence/sizing.md has no figures under %q", head)
	}
	return table
}

// readPage returns the text of docs/evidence/sizing.md. A test runs in the folder of its package, somewhere
// below the folder of go.mod.
func readPage(t testing.TB) string {
	t.Helper()
	for root := "."; ; root = filepath.Join(root, "..") {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			text, err := os.ReadFile(filepath.Join(root, "docs", "evidence", "sizing.md"))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if at, err := filepath.Abs(root); err != nil || at == "/" {
			t.Fatal("no go.mod above the test's folder")
		}
	}
}

// parse finds a table by the head of its first column. Cells that are no number are left
// out.
func parse(page, head string) Table {
	table := Table{}
	var columns []string
	for line := range strings.Lines(page) {
		cells := cellsOf(line)
		switch {
		case len(cells) == 0:
			columns = nil
		case columns != nil:
			table.add(columns, cells)
		case cells[0] == head:
			columns = cells
		}
	}
	return table
}

// cellsOf splits a line of a table; there are none if it is no such line.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// add adds the figures of a row.
func (table Table) add(columns, cells []string) {
	for i := 1; i < min(len(columns), len(cells)); i++ {
		figure, err := strconv.ParseFloat(strings.ReplaceAll(cells[i], ",", ""), 64)
		if err != nil {
			continue
		}
		if table[cells[0]] == nil {
			table[cells[0]] = map[string]float64{}
		}
		table[cells[0]][columns[i]] = figure
	}
}

// Rows returns the names of the rows, sorted. Tests go through them, so that no row is
// without a measurement.
func (table Table) Rows() []string { return slices.Sorted(maps.Keys(table)) }

// Check fails the test unless what it measured is at most the page's figure, and at least
// half of it.
func (table Table) Check(t testing.TB, row, column string, measured float64) {
	t.Helper()
	figure, ok := table[row][column]
	switch {
	case !ok:
		t.Errorf("docs/evidence/sizing.md has no figure for %q, %q; measured: %.4g", row, column, measured)
	case measured > figure || measured < figure/2:
		t.Errorf("%s, %s: measured %.4g, and docs/evidence/sizing.md says %.4g", row, column, measured, figure)
	default:
		t.Logf("%s, %s: measured %.4g of %.4g", row, column, measured, figure)
	}
}
