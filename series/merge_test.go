package series_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// backupOf is the series of a backup.
func backupOf(f series.Frozen) *raftlogv1.SeriesRecord {
	m, _ := f.Record()
	return m
}

// repeated calls until nothing is left to be done.
func repeated(call func() (more bool, err error)) error {
	for {
		if more, err := call(); err != nil || !more {
			return err
		}
	}
}

// merged merges a backup into a series.
func merged(s *series.Series, f series.Frozen) error {
	if err := repeated(func() (bool, error) { return s.Merge(backupOf(f)) }); err != nil {
		return err
	}
	var failed error
	_, origin := f.Record()
	f.Pieces(func(p *record) bool {
		p.Origin = origin
		failed = repeated(func() (bool, error) { return s.MergeNumbers(p) })
		return failed == nil
	})
	return failed
}

func merge(t testing.TB, s *series.Series, f series.Frozen) {
	t.Helper()
	if err := merged(s, f); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(); err != nil {
		t.Fatal(err)
	}
}

// fromBackups is the series that was restored from backups, in their order.
func fromBackups(t testing.TB, backups ...series.Frozen) *series.Series {
	t.Helper()
	s, err := series.NewFromBackup(backupOf(backups[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range backups {
		merge(t, s, f)
	}
	return s
}

// sorted is all that a series has, its scopes in the order of their names.
func sorted(s *series.Series) string {
	all := map[string]string{}
	f := s.Freeze()
	f.Pieces(func(p *record) bool {
		all[strings.ToUpper(fmt.Sprint(p.GetScope()))] += fmt.Sprintf("%+v\n", p)
		return true
	})
	var lines []string
	for _, line := range all {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	head := fmt.Sprintf("%+v\n", backupOf(f))
	f.Lost(func(l *raftlogv1.SeriesLostRecord) bool { head += fmt.Sprintf("lost %+v\n", l); return true })
	return head + strings.Join(lines, "")
}

// TestTwoBackupsAreTheNewerOne, in whatever order they are restored, and again: the states of
// numbers only get nearer to their last one, and of two definitions the newer one holds.
func TestTwoBackupsAreTheNewerOne(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := &history{Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 35)), t: t, now: 1_000}
		d := h.definition()
		s, err := series.New(d)
		if err != nil {
			t.Fatal(err)
		}
		s.BeginAt(h.now)
		h.frozen = s.Freeze()
		h.then = dump(h.frozen)
		h.s, h.m = s, &model{d: d, scopes: map[string]*modelScope{}, had: map[string]had{}, now: h.now}
		play := func(steps int) series.Frozen {
			for range steps {
				h.step()
			}
			return h.s.Freeze()
		}
		older := play(rapid.IntRange(0, 40).Draw(r, "before"))
		newer := play(rapid.IntRange(0, 40).Draw(r, "after"))
		want := fromBackups(t, newer)
		for name, got := range map[string]*series.Series{
			"the older one first":  fromBackups(t, older, newer),
			"the newer one first":  fromBackups(t, newer, older),
			"each of them twice":   fromBackups(t, older, newer, newer, older),
			"a restored older one": fromBackups(t, fromBackups(t, older).Freeze(), newer),
			"a restored newer one": fromBackups(t, older, fromBackups(t, newer).Freeze()),
		} {
			if sorted(got) != sorted(want) || got.Hash() != want.Hash() {
				h.fail("%s:\n%s\nthe newer one:\n%s", name, sorted(got), sorted(want))
			}
		}
		// The series itself, which has gone on since, lacks nothing of its own backups.
		hash := h.s.Hash()
		merge(t, h.s, older)
		merge(t, h.s, newer)
		if h.s.Hash() != hash {
			h.fail("own backups have changed the series")
		}
	})
}

// TestABackupOfAnotherSeries is refused, and changes nothing.
func TestABackupOfAnotherSeries(t *testing.T) {
	begin := func(at int64, d series.Definition, keys ...string) *series.Series {
		s := newSeries(t, d)
		s.BeginAt(at)
		for _, key := range keys {
			mustTake(t, s, at, request(key))
		}
		return s
	}
	confirmed := func(s *series.Series, key string) *series.Series {
		if _, err := s.Confirm(1, []*raftlogv1.SeriesKey{{Key: key}}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	other := series.Definition{Format: "X{branch}-{year}-{number:6}", Reset: format.ResetYear}
	for name, tt := range map[string]struct{ here, backup *series.Series }{
		"both have final numbers":   {confirmed(begin(1, other, "a"), "a"), confirmed(begin(2, series.Definition{}, "a"), "a")},
		"a series that goes on":     {begin(1, other, "a"), confirmed(begin(2, series.Definition{}, "a"), "a")},
		"other texts":               {begin(1, other, "a"), begin(1, series.Definition{}, "a")},
		"a final number of another": {confirmed(begin(1, series.Definition{}, "a"), "a"), confirmed(begin(1, series.Definition{}, "b"), "b")},
		"another key that has it": {
			confirmed(begin(1, series.Definition{}, "a", "b"), "a"),
			confirmed(begin(1, series.Definition{}, "a", "c"), "a"),
		},
		"a key that has another one": {
			confirmed(begin(1, series.Definition{}, "a", "b"), "a"),
			confirmed(begin(1, series.Definition{}, "a", "c", "b"), "b"),
		},
	} {
		hash := tt.here.Hash()
		if err := merged(tt.here, tt.backup.Freeze()); kind(err) != "differs" || tt.here.Hash() != hash {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestASeriesThatBeganAnew: of what was tried out and of the series that has final numbers,
// that one is restored, in any order.
func TestASeriesThatBeganAnew(t *testing.T) {
	s := newSeries(t, series.Definition{})
	s.BeginAt(1)
	mustTake(t, s, 1, request("tried", "out"))
	older := s.Freeze()
	d, version := s.Definition()
	d.Format = "N{branch}-{year}-{number:4}"
	if err := s.Redefine(2, d, version); err != nil {
		t.Fatal(err)
	}
	mustTake(t, s, 3, request("a"))
	for _, final := range []bool{false, true} {
		if final {
			if _, err := s.Confirm(4, []*raftlogv1.SeriesKey{{Key: "a"}}); err != nil {
				t.Fatal(err)
			}
		}
		newer := s.Freeze()
		want := sorted(fromBackups(t, newer))
		if got := sorted(fromBackups(t, older, newer)); got != want {
			t.Errorf("the older one first: %s, want %s", got, want)
		}
		if got := sorted(fromBackups(t, newer, older)); got != want {
			t.Errorf("the newer one first: %s, want %s", got, want)
		}
	}
}

// TestAnUnknownNumberTakesTheKeyOfABackup: numbers were resumed beyond one backup, and a
// newer one knows whose they are.
func TestAnUnknownNumberTakesTheKeyOfABackup(t *testing.T) {
	s := newSeries(t, series.Definition{ExpiresIn: time.Hour, OnExpiry: series.ExpiryVoids})
	mustTake(t, s, 1, request("k1", "k2"))
	if _, err := s.Confirm(1, []*raftlogv1.SeriesKey{{Key: "k1"}}); err != nil {
		t.Fatal(err)
	}
	monday := s.Freeze()
	mustTake(t, s, 2, request("k3", "k4"))
	if _, err := s.Confirm(3, []*raftlogv1.SeriesKey{{Key: "k3"}}); err != nil {
		t.Fatal(err)
	}
	restored := fromBackups(t, monday)
	if err := restored.Resume(5, []*raftlogv1.SeriesInBooks{{Scope: []string{"2026", "BERLIN"}, Last: 4}}, false); err != nil {
		t.Fatal(err)
	}
	merge(t, restored, s.Freeze())
	for key, want := range map[string]series.NumberState{
		"k1": series.Confirmed, "k2": series.Unknown, "k3": series.Confirmed,
		"k4": series.Unknown,
	} {
		if n, ok := restored.At(1 << 60).WhoHas(key); !ok || series.NumberState(n.GetState()) != want {
			t.Errorf("%s has %+v, %t, want it %s", key, n, ok, want)
		}
	}
	if !restored.Suspended() {
		t.Error("a series that learnt of numbers goes on")
	}
}

// TestAKeyThatTookAgain after the books had nothing of its number has the later one, also
// where the older backup is restored first.
func TestAKeyThatTookAgain(t *testing.T) {
	s := newSeries(t, series.Definition{})
	mustTake(t, s, 1, request("a"))
	if _, err := s.Confirm(1, []*raftlogv1.SeriesKey{{Key: "a"}}); err != nil {
		t.Fatal(err)
	}
	mustTake(t, s, 2, request("b"))
	s.Suspend()
	if err := s.Resume(3, nil, false); err != nil {
		t.Fatal(err)
	}
	older := s.Freeze()
	scope := s.At(3).Report(0, 1, 0)[0].Scope
	if _, err := s.Reconcile(4, scope, []*raftlogv1.SeriesKey{{Number: 2}}, ""); err != nil {
		t.Fatal(err)
	}
	mustTake(t, s, 5, request("b"))
	newer := s.Freeze()
	want := fromBackups(t, newer)
	for name, got := range map[string]*series.Series{
		"older first": fromBackups(t, older, newer),
		"newer first": fromBackups(t, newer, older),
	} {
		if n, ok := got.At(6).WhoHas("b"); !ok || n.Number != 3 || got.Hash() != want.Hash() {
			t.Errorf("%s: b has %+v\n%s\nthe newer one:\n%s", name, n, sorted(got), sorted(want))
		}
	}
}
