package apply

import (
	"math/rand/v2"
	"testing"
)

// TestStatesAgainstASlowModel adds and replaces states at random, and asks for
// every index around them.
func TestStatesAgainstASlowModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s, model := &States{}, []StateAt{}
	if _, what := s.at(1); what != notYet {
		t.Errorf("an empty state: %v", what)
	}
	for round := range 4 {
		for index := uint64(1 + r.IntN(10)); len(model) < (round+1)*(rememberedStates/2); index += 1 + r.Uint64N(3) {
			s.add(index, index*7)
			s.add(index-r.Uint64N(2), 99) // It is there already, or too old.
			model = append(model, StateAt{index, index * 7})
		}
		compareStates(t, s, model)
		if got, want := s.Newest(), model[len(model)-1]; got != want {
			t.Errorf("the newest state is %v, want %v", got, want)
		}
		s.replace()
		if _, what := s.at(model[0].Index); what != notYet || s.Newest().Index != 0 || s.replaced() != uint64(round+1) {
			t.Errorf("after %d snapshots: %v, newest %v, replaced %d times", round+1, what, s.Newest(), s.replaced())
		}
		model = nil
	}
}

func compareStates(t *testing.T, s *States, model []StateAt) {
	t.Helper()
	kept := model[max(0, len(model)-rememberedStates):]
	for index := kept[0].Index - 1; index <= kept[len(kept)-1].Index+2; index++ {
		want, what := uint64(0), gone
		for _, m := range kept[max(0, int(index-kept[0].Index)/3):] {
			if m.Index > index {
				break
			}
			want, what = m.Hash, known
		}
		if index > kept[len(kept)-1].Index {
			want, what = 0, notYet
		}
		if got, is := s.at(index); got != want || is != what {
			t.Fatalf("at %d of %d to %d: %d, %v; want %d, %v", index, kept[0].Index, kept[len(kept)-1].Index, got, is, want, what)
		}
	}
}

// BenchmarkStates is what a log entry costs.
func BenchmarkStates(b *testing.B) {
	s := &States{}
	for i := range uint64(b.N) {
		s.add(i+1, i)
	}
}
