// Package damage spoils the files of one node of three in every way that a disk,
// a file system or a hand can, and looks at what the node does then: it notices
// and ends with DATA_LOSS, or what it reads is what was written. Nothing else is
// allowed; above all, no damage is silent.
//
// Most damages are tried within processes of this program, which open the data
// directory as a node does; some tens with real nodes, beside two others that
// must go on. IDNODE_DAMAGES says how many are tried within processes,
// IDNODE_DAMAGED_NODES how many with real nodes, IDNODE_E2E_SEED which, and
// IDNODE_DAMAGE_PAGE names a page to write the figures into.
package damage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
)

func TestMain(m *testing.M) {
	if beTrial() {
		return
	}
	code := m.Run()
	harness.RemoveBinary()
	if page := os.Getenv("IDNODE_DAMAGE_PAGE"); page != "" {
		if err := writePage(page); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// number is what an environment variable says, or otherwise.
func number(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// seed is what all damages are drawn from.
func seed(t testing.TB) uint64 {
	t.Helper()
	n := number(t, "IDNODE_E2E_SEED", rand.Uint64())
	t.Logf("again: IDNODE_E2E_SEED=%d", n)
	return n
}
