package series_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// periodText writes a report of a period: for each scope the first and the last text, the counts, and the ranges.
func periodText(parts []series.Period) (all string) {
	for _, p := range parts {
		all += fmt.Sprintf("%v %s-%s %v", p.Scope, p.First.Text, p.Last.Text, p.Count)
		for _, v := range p.Voided {
			all += fmt.Sprintf(" %d-%d %s", v.First.Number, v.Last.Number, v.First.Reason)
		}
		all += "\n"
	}
	return all
}

func wholePeriod(v *series.View, from, to format.Date, limit int) (parts []series.Period) {
	at, more := series.VerifyCursor{}, true
	for more {
		var some []series.Period
		some, at, more = v.PeriodSome(at, from, to, limit)
		parts = append(parts, some...)
	}
	return parts
}

// TestPeriod: numbers are counted by their documents' dates, and voided ones are ranges of one reason.
func TestPeriod(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{branch}-{year}-{number}", Reset: format.ResetYear})
	for i := range 8 {
		q := of(today+format.Date(i/2), fmt.Sprint("k", i))
		q.Values = []string{"A"}
		mustTake(t, s, 1, q)
	}
	for i, reason := range map[int]string{1: "torn", 2: "torn", 3: "lost", 5: "lost"} {
		if _, err := s.Void(1, []*raftlogv1.SeriesKey{{Key: fmt.Sprint("k", i)}}, reason); err != nil {
			t.Fatal(err)
		}
	}
	got := periodText(wholePeriod(s.At(1), today, today+2, 100))
	if want := "[2026 A] A-2026-1-A-2026-6 [0 2 0 4 0 0] 2-3 torn 4-4 lost 6-6 lost\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := periodText(wholePeriod(s.At(1), today+400, today+500, 100)); got != "" {
		t.Errorf("a period without documents has %s", got)
	}
}

// TestPeriodAgainstTheList compares the report, in parts of any size, with the lists of all numbers.
func TestPeriodAgainstTheList(t *testing.T) {
	for seed := range uint64(60) {
		s := play(t, seed)
		r := rand.New(rand.NewPCG(seed, 58))
		from := format.DateOf(2026, 12, 28) + format.Date(r.IntN(5))
		to := from + format.Date(r.IntN(4))
		v := s.At(1 << 60)
		got := map[string][series.Unknown + 1]int64{}
		for _, p := range wholePeriod(v, from, to, 1+r.IntN(40)) {
			count := got[fmt.Sprint(p.Scope)]
			voided := int64(0)
			for state, n := range p.Count {
				count[state] += n
			}
			for _, x := range p.Voided {
				voided += x.Last.Number - x.First.Number + 1
			}
			if voided != p.Count[series.Voided] {
				t.Fatalf("seed %d: %d voided numbers in ranges, and %d in all", seed, voided, p.Count[series.Voided])
			}
			got[fmt.Sprint(p.Scope)] = count
		}
		want := map[string][series.Unknown + 1]int64{}
		for _, c := range v.Report(0, 100, 0) {
			all, _, _ := v.Numbers(c.Scope, 0, 0, 1000)
			for _, n := range all {
				if d := format.Date(n.Date); d >= from && d <= to {
					count := want[fmt.Sprint(c.Scope)]
					count[n.State]++
					want[fmt.Sprint(c.Scope)] = count
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d, %s to %s: %v, want %v", seed, from, to, got, want)
		}
	}
}
