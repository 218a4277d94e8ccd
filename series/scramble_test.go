package series_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// TestScrambledNumbers: texts do not tell how many numbers there are, are found again, and stay what they are in
// frozen copies and backups. A series of another secret has others.
func TestScrambledNumbers(t *testing.T) {
	d := series.Definition{Format: "{branch}-{year}-{scrambled:6}", Reset: format.ResetYear, Order: series.OrderDates}
	begin := func(secret string) *series.Series {
		s := newSeries(t, d)
		s.BeginAt(1)
		s.Scramble([]byte(secret))
		return s
	}
	s, other := begin("one"), begin("other")
	texts := map[string]int64{}
	for i := range 50 {
		q := of(today, fmt.Sprint("k", i))
		q.Values = []string{"Ab"}
		n, m := mustTake(t, s, 2, q)[0], mustTake(t, other, 2, q)[0]
		if n.Number != int64(i+1) || n.Text == m.Text || !regexp.MustCompile("^Ab-2026-[0-9A-HJKMNP-TV-Z]{6}$").MatchString(n.Text) {
			t.Fatalf("%+v, with another secret %+v", n, m)
		}
		texts[n.Text] = n.Number
	}
	if len(texts) != 50 {
		t.Errorf("%d texts", len(texts))
	}
	if hash := fromScratch(s.Freeze()); hash != s.Hash() || s.Hash() == other.Hash() {
		t.Errorf("hashes are %x, %x, and %x with another secret", hash, s.Hash(), other.Hash())
	}
	for _, same := range []*series.Series{s, restored(t, s.Freeze())} {
		for text, number := range texts {
			if n, ok, err := same.At(2).Find(text); !ok || err != nil || n.Number != number {
				t.Errorf("%s is %+v, %v", text, n, err)
			}
		}
	}
	if _, err := s.Merge(backupOf(other.Freeze())); kind(err) != "differs" {
		t.Errorf("merged with a series of another secret: %v", err)
	}
	backup, err := series.NewFromBackup(backupOf(s.Freeze()))
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := backup.Format().Format(today, []string{"Ab"}, 1); texts[same] != 1 {
		t.Errorf("number 1 of the backup is %s", same)
	}
	d.MaxOpen = 100
	if err := s.Redefine(3, d, 1); err != nil {
		t.Fatal(err)
	}
	if n, _ := s.At(3).WhoHas("k0"); texts[n.Text] != 1 {
		t.Errorf("number 1 is %s after a redefinition", n.Text)
	}
}

// TestWithoutScrambledNumbersNoSecretIsKept.
func TestWithoutScrambledNumbersNoSecretIsKept(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}"})
	s.Scramble(make([]byte, 32))
	record, _ := s.Freeze().Record()
	if len(record.GetSecret()) > 0 {
		t.Errorf("%x", record.GetSecret())
	}
	s = newSeries(t, series.Definition{Format: "{scrambled:4}"})
	s.Scramble(make([]byte, 1000))
	if record, _ = s.Freeze().Record(); len(record.GetSecret()) != series.MaxSecretBytes {
		t.Errorf("%d bytes", len(record.GetSecret()))
	}
}
