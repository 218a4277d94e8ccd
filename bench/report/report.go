// Package report turns results into tables and plots, and puts them into the
// page where people read them.
//
// It owns what is compared with what, and the targets. It measures nothing.
package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/idnode/idnode/bench/result"
)

// block is a generated part of the page.
type block struct{ name, text string }

// blocks are all parts, in the order of the page.
func blocks(r result.Results) []block {
	return []block{
		{"machine", about(r)},
		{"targets", targetTable(r)},
		{"rates", rateTable(r)},
		{"latencies", latencyTable(r)},
		{"generators", generatorTable(r)},
	}
}

// plots are the pictures that the page shows, by file name.
func plots(r result.Results) map[string]string {
	return map[string]string{
		"performance-rates.svg":      rateChart(r).svg(),
		"performance-generators.svg": generatorChart(r).svg(),
	}
}

// Write writes the generated parts of the page, and the plots beside it. "-" as
// the page prints the parts.
func Write(page string, stdout io.Writer, r result.Results) error {
	if page == "-" {
		for _, b := range blocks(r) {
			if _, err := fmt.Fprintf(stdout, "%s\n", b.text); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	written, err := replaceBlocks(string(text), blocks(r))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	for name, svg := range plots(r) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(page), name), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(page, []byte(written), 0o644)
}
