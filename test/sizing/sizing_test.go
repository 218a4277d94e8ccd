package sizing

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = `
| other | heap |
|---|---:|
| claim | 1 |

| kept | heap | log |
|---|---:|---:|
| claim | 1,200 | – |
| identity | 12.5 | 7 |

| claim | 3 | 4 |
`

func TestParse(t *testing.T) {
	want := Table{"claim": {"heap": 1200}, "identity": {"heap": 12.5, "log": 7}}
	if d := cmp.Diff(want, parse(page, "kept")); d != "" {
		t.Error(d)
	}
	if got := parse(page, "lost"); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if d := cmp.Diff([]string{"claim", "identity"}, want.Rows()); d != "" {
		t.Error(d)
	}
}

// failures counts what a test reports, and keeps it from the real one.
type failures struct {
	testing.TB
	count int
}

func (f *failures) Helper()               {}
func (f *failures) Logf(string, ...any)   {}
func (f *failures) Errorf(string, ...any) { f.count++ }

func TestCheck(t *testing.T) {
	table := parse(page, "kept")
	want := map[string]int{"1200": 0, "1201": 1, "600": 0, "599": 1}
	got := map[string]int{}
	for _, measured := range []float64{1200, 1201, 600, 599} {
		f := &failures{TB: t}
		table.Check(f, "claim", "heap", measured)
		got[fmt.Sprint(measured)] = f.count
	}
	if !maps.Equal(want, got) {
		t.Errorf("%v, want %v", got, want)
	}
	f := &failures{TB: t}
	table.Check(f, "claim", "log", 1)
	if f.count != 1 {
		t.Error("a figure that the page does not have was accepted")
	}
}
