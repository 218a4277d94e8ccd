package series_test

import (
	"slices"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// entered is a request for the number that a document has already.
func entered(key string, number int64) *raftlogv1.SeriesTake {
	m := request(key).Message(1)
	m.Number, m.Because = number, "elsewhere"
	return m
}

func mustEnter(t *testing.T, s *series.Series, key string, number int64) {
	t.Helper()
	got, err := s.Take(1, entered(key, number))
	if err != nil || got[0].Number != number || series.NumberState(got[0].State) != series.Confirmed {
		t.Fatalf("%s has %v, %v, want number %d", key, got, err, number)
	}
}

// TestNumbersFromElsewhere: they are before the scope, the next, and above it. They survive a restart, a backup, and
// two backups that have different ones.
func TestNumbersFromElsewhere(t *testing.T) {
	s := begun(t)
	mustEnter(t, s, "old", 481)
	first := s.Freeze()
	for key, number := range map[string]int64{"older": 1, "newer": 482, "last": 542} {
		mustEnter(t, s, key, number)
	}
	mustEnter(t, s, "next", 543)
	mustEnter(t, s, "ahead", 546)
	if n := mustTake(t, s, 1, request("new"))[0].Number; n != 547 {
		t.Errorf("behind it comes %d", n)
	}
	sum := s.At(1).Report(0, 10, 0)[0]
	if sum.Before != 538 || sum.Confirmed != 6 || sum.Voided != 2 || sum.Last != 547 || s.Verify() != nil {
		t.Errorf("%+v, %v", sum, s.Verify())
	}
	all, _, err := s.At(1).Numbers(berlin, series.Voided, 0, 10)
	if err != nil || len(all) != 2 || all[0].Number != 544 || all[0].Reason != "elsewhere" || all[0].Key != "" {
		t.Errorf("voided are %v, %v", all, err)
	}
	if found, ok, err := s.At(1).Find("BERLIN-2026-0481"); !ok || err != nil || found.Key != "old" {
		t.Errorf("0481 is %v, %t, %v", found, ok, err)
	}
	if next := restored(t, s.Freeze()); next.Hash() != s.Hash() || next.Verify() != nil {
		t.Errorf("restarted it has another hash, %v", next.Verify())
	}
	var hashes []uint64
	for _, backups := range [][]series.Frozen{{first, s.Freeze()}, {s.Freeze(), first}, {s.Freeze()}} {
		into := mustNew(t)
		for _, f := range backups {
			merge(t, into, f)
		}
		if n, ok := into.WhoHas("older"); !ok || n.Number != 1 || into.Verify() != nil {
			t.Errorf("merged: %v, %t, %v", n, ok, into.Verify())
		}
		hashes = append(hashes, into.Hash())
	}
	if len(slices.Compact(hashes)) != 1 {
		t.Errorf("backups in two orders have the hashes %x", hashes)
	}
}

// TestEnteredTwice: a number has one key, here and in the cluster of a backup, and a key one number. What is refused
// changes nothing.
func TestEnteredTwice(t *testing.T) {
	s := begun(t)
	mustEnter(t, s, "old", 481)
	mustEnter(t, s, "next", 543)
	hash := s.Hash()
	for _, tt := range []struct {
		key    string
		number int64
		field  string
	}{
		{"other", 481, "number"},
		{"other", 543, "number"},
		{"old", 482, "keys"},
		{"old", 544, "keys"},
		{"other", 0, "number"},
		{"other", -1, "number"},
		{"other", 10_000, "number"},
	} {
		_, err := s.Take(1, entered(tt.key, tt.number))
		if refused, ok := err.(*series.Error); !ok || refused.Field != tt.field || s.Hash() != hash {
			t.Errorf("%s as %d: %v, changed %t", tt.key, tt.number, err, s.Hash() != hash)
		}
	}
	other := begun(t)
	mustEnter(t, other, "z", 481)
	if err := merged(other, s.Freeze()); kind(err) != "differs" {
		t.Errorf("481 of two clusters: %v", err)
	}
	if n, _ := other.WhoHas("z"); n.GetNumber() != 481 {
		t.Errorf("z has %v", n)
	}
}
