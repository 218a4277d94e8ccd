// Package tier says how many of the tests run.
//
// There are two tiers. `go test ./...` runs the quick one, in five minutes on
// two cores. TEST_TIER=all adds the tests that call Long; .ci/run sets it.
package tier

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// variable is what names the tier in the environment. It has no prefix IDNODE_: a node
// that inherits it would refuse it as an unknown setting.
const variable = "TEST_TIER"

// All says whether every test runs.
func All() bool { return os.Getenv(variable) == "all" }

// Long skips a test that the quick tier leaves out: it takes more than a few seconds,
// and a quicker test has the same kind of fault.
func Long(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("a long test: set " + variable + "=all, as make check does")
	}
}

// Overlap lets the quick tier run four tests of the package on each processor, not one: it
// is for tests that wait for elections most of the time. A package's TestMain calls it
// before it runs the tests. The flag -parallel counts all the same.
func Overlap() {
	if All() {
		return // These run with the race detector, which leaves no time over.
	}
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}
