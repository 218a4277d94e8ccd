// Package browser uses the page of real nodes in a headless Chromium, and breaks
// them while it is open. It is a module of its own, so that idnode does not need
// what steers the browser.
package browser

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
