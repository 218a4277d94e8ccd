package superrange

import "testing"

const (
	seeds = 150
	steps = 600
)

// run plays one seed.
func run(t *testing.T, seed uint64, f faults, restores bool) *world {
	w := newWorld(t, seed, f)
	w.restores = restores
	for range steps {
		if w.step(); w.twice != "" {
			break
		}
	}
	return w
}

// TestNoNumberComesTwice, whatever is cut, lost, repeated, late, crashed or restored; and
// once the links are whole every cluster gives numbers again.
func TestNoNumberComesTwice(t *testing.T) {
	for seed := range uint64(seeds) {
		w := run(t, seed, faults{}, true)
		w.settle()
		if w.twice != "" {
			t.Fatalf("seed %d: %s", seed, w.twice)
		}
	}
}

// settle joins all links, and plays on until every cluster has given a number.
func (w *world) settle() {
	w.restores = false
	before := map[string]int{}
	count := func(who string) (n int) {
		for _, other := range w.given {
			if who == other {
				n++
			}
		}
		return n
	}
	for _, who := range []string{"home", w.children[0].name, w.children[1].name} {
		before[who] = count(who)
	}
	for range 2000 {
		for _, c := range w.children {
			c.cut = false
		}
		w.step()
	}
	for who, n := range before {
		if count(who) == n {
			w.t.Errorf("%s gives nothing any more", who)
		}
	}
}

// TestPlantedFaultsAreFound by the same steps.
func TestPlantedFaultsAreFound(t *testing.T) {
	for name, f := range map[string]faults{
		"a grant is used before it is in the child's log": {useUnlogged: true},
		"a restored child goes on in its super-range":     {restoreGrants: true},
		"a restored child repeats its request ids":        {keepName: true},
		"a restored home does not wait for reports":       {homeForgets: true},
		"a grant of the home before its restore is taken": {takeOldAnswers: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				if w := run(t, seed, f, true); w.twice != "" {
					t.Logf("seed %d: %s", seed, w.twice)
					return
				}
			}
			t.Error("not found")
		})
	}
}

// TestANewRequestIDLeavesAGap and no more. Under one request id every grant is used, but
// for the one that each child waits for.
func TestANewRequestIDLeavesAGap(t *testing.T) {
	var gaps int
	for seed := range uint64(seeds) {
		one, each := run(t, seed, faults{}, false), run(t, seed, faults{newIDs: true}, false)
		if one.twice != "" || each.twice != "" {
			t.Fatalf("seed %d: %q, %q", seed, one.twice, each.twice)
		}
		if lost := len(one.grants) - len(one.installed); lost > len(one.children) {
			t.Errorf("seed %d: %d grants are lost", seed, lost)
		}
		gaps += len(each.grants) - len(each.installed)
	}
	if gaps <= seeds*2 {
		t.Errorf("%d grants are lost in %d runs", gaps, seeds)
	}
	t.Logf("%d grants are lost in %d runs", gaps, seeds)
}
