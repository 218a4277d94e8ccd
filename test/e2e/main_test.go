// Package e2e runs clusters of real idnode processes and breaks them: edges
// cut, processes killed, disks emptied or set back, answers lost. What must
// hold then is written in the tests; docs/promises.md says it.
package e2e

import (
	"os"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}
