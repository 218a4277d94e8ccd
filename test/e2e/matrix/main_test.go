// Package matrix is the table of faults: a test for each kind, with traffic of
// all kinds on all nodes of real processes, every answer recorded, and the whole
// history judged at the end. README.md shows the figures.
//
// Each test is short by default, and then allows twice the times that are promised. IDNODE_E2E_CYCLES says how often each fault is
// repeated; IDNODE_MATRIX=full repeats each as often as the table promises, and
// IDNODE_MATRIX=medium five times as often as by default. IDNODE_MATRIX_PAGE names a page to
// write the figures into.
package matrix

import (
	"fmt"
	"os"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.RemoveBinary()
	if page := os.Getenv("IDNODE_MATRIX_PAGE"); page != "" {
		if err := writePage(page); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
