// Package e2e runs clusters of real idnode processes and breaks them: edges
// cut, processes killed, disks emptied or set back, answers lost. What must
// hold then is written in the tests; docs/promises.md says it.
package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "kubectl" {
		if err := newKubectl().run(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	tier.Overlap()
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}
