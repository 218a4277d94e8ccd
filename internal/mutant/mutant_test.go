package mutant

import "testing"

var sink int

// BenchmarkOff shows what a branch costs: without the tag, nothing.
func BenchmarkOff(b *testing.B) {
	b.Run("none", func(b *testing.B) {
		n := 0
		for range b.N {
			n++
		}
		sink = n
	})
	b.Run("branch", func(b *testing.B) {
		n := 0
		for range b.N {
			n++
			if On(SeedLowers) {
				n = sink
			}
		}
		sink = n
	})
}

// TestNoMutantByDefault: a bug must be asked for.
func TestNoMutantByDefault(t *testing.T) {
	t.Setenv("IDNODE_MUTANT", "")
	if On(SeedLowers) {
		t.Error("there is a bug that nobody has asked for")
	}
}
