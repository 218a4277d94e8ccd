package exploration

import (
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/test/tier"
)

type (
	commitSession = commit.Session
	commitGroup   = commit.Group
)

func newSession(node int) commit.Session { return commit.NewSession(sessionOf(node)) }

var (
	only = flag.String("scenario", "", "explore this scenario alone")
	more = flag.Uint("more", 0, "so many more faults of each kind that a scenario has")
	most = flag.Int("most", 20_000_000, "hold at most so many worlds of a scenario")
)

// Nothing that must not happen does, in whatever order the steps come, and each call can
// end.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			if *only != "" && *only != s.name {
				t.Skip("not wanted")
			}
			if s.long && *only == "" {
				tier.Long(t)
			}
			x := newExplorer(s.more(uint8(*more)))
			r := x.explore(*most)
			t.Log(r)
			if r.wrong != "" {
				t.Fatal(r.wrong)
			}
			if !r.whole && *more == 0 {
				t.Error("there is more to explore")
			}
		})
	}
}

// An exploration stops at its bound, within a depth, and says so.
func TestTheBoundIsHard(t *testing.T) {
	small := scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == "TOKEN" })]
	whole := newExplorer(small).explore(*most)
	for bound, stopped := range map[int]bool{1: true, 1000: true, whole.worlds - 1: true, whole.worlds: false} {
		r := newExplorer(small).explore(bound)
		if r.worlds != bound || r.whole == stopped || strings.Contains(r.String(), "stopped") != stopped {
			t.Errorf("bound by %d worlds: %s", bound, r)
		}
	}
}

// A world's bytes are what is hashed, so none of them may be padding.
func TestAWorldHasNoPadding(t *testing.T) {
	if sum := sizeOf(reflect.TypeFor[world]()); sum != worldBytes {
		t.Errorf("the fields have %d bytes, the world %d", sum, worldBytes)
	}
}

// sizeOf adds up what the fields of a type take.
func sizeOf(t reflect.Type) (sum uintptr) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			sum += sizeOf(t.Field(i).Type)
		}
		return sum
	case reflect.Array:
		return uintptr(t.Len()) * sizeOf(t.Elem())
	default:
		return t.Size()
	}
}
