package series_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/test/cputime"
)

var today = format.DateOf(2026, time.November, 23)

func newSeries(t testing.TB, d series.Definition) *series.Series {
	t.Helper()
	if d.Format == "" {
		d.Format, d.Reset = "INV-{branch}-{year}-{number:6}{check:damm}", format.ResetYear
	}
	s, err := series.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func request(keys ...string) series.Request {
	return series.Request{Values: []string{"BERLIN"}, Date: today, Today: today, Keys: keys}
}

func mustTake(t *testing.T, s *series.Series, now int64, q series.Request) []*raftlogv1.SeriesNumber {
	t.Helper()
	numbers, err := s.TakeFor(now, q)
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

func texts(numbers []*raftlogv1.SeriesNumber) (all []string) {
	for _, n := range numbers {
		all = append(all, n.Text)
	}
	return all
}

// TestTheLastNumberOfThePeriodBefore: of the same values, whatever the order in which the
// periods began.
func TestTheLastNumberOfThePeriodBefore(t *testing.T) {
	s := newSeries(t, series.Definition{})
	for i, year := range []int{2026, 2024, 2030, 2027} {
		for _, branch := range []string{"BERLIN", "ULM"} {
			q := series.Request{Values: []string{branch}, Date: format.DateOf(year, time.March, 1), Today: today + 10*366}
			for n := range i + 1 {
				q.Keys = append(q.Keys, fmt.Sprint(year, branch, n))
			}
			mustTake(t, s, 1, q)
		}
	}
	for year, want := range map[string]*raftlogv1.SeriesLast{
		"2024": {}, "2026": {Scope: []string{"2024", "ULM"}, Last: 2}, "2027": {Scope: []string{"2026", "ULM"}, Last: 1},
		"2030": {Scope: []string{"2027", "ULM"}, Last: 4}, "2031": {},
	} {
		for _, same := range []*series.Series{s, restored(t, s.Freeze())} {
			got := same.Before([]*raftlogv1.SeriesNumber{{Scope: []string{year, "ULM"}, Number: 1}})
			if got.GetLast() != want.Last || !slices.Equal(got.GetScope(), want.Scope) {
				t.Errorf("before %s: %v, want %v", year, got, want)
			}
		}
	}
}

// TestARetryHasTheSameNumber: on a later day, in the next year, after the end of the scope.
func TestARetryHasTheSameNumber(t *testing.T) {
	s := newSeries(t, series.Definition{})
	q := request("order-1", "order-2")
	q.Label = "till 7"
	first := mustTake(t, s, 100, q)
	if !slices.Equal(texts(first), []string{"INV-BERLIN-2026-0000015", "INV-BERLIN-2026-0000028"}) {
		t.Fatalf("got %v", texts(first))
	}
	if _, err := s.CloseScope(150, []string{"2026", "BERLIN"}); err != nil {
		t.Fatal(err)
	}
	q.Date, q.Today = q.Date+60, q.Today+60
	for i, n := range mustTake(t, s, 200, q) {
		want := first[i]
		if n.Text != want.Text || n.TakenUnixNano != 100 || n.Date != int32(today) || n.Label != "till 7" || n.Key != q.Keys[i] {
			t.Errorf("a retry got %+v, want %+v", n, want)
		}
	}
	q.DateGiven = true
	_, err := s.TakeFor(300, q)
	if conflict := (*series.Error)(nil); !errors.As(err, &conflict) || conflict.SeriesNumber.Text != first[0].Text {
		t.Errorf("another date of the caller: %v", err)
	}
	q = request("order-2")
	q.Values = []string{"PARIS"}
	_, err = s.TakeFor(300, q)
	if conflict := (*series.Error)(nil); !errors.As(err, &conflict) || conflict.SeriesNumber.Number != 2 {
		t.Errorf("another scope: %v", err)
	}
}

func TestDefinitions(t *testing.T) {
	valid := series.Definition{Format: "{number:2}"}
	for field, change := range map[string]func(*series.Definition){
		"order":      func(d *series.Definition) { d.Order = 9 },
		"on_release": func(d *series.Definition) { d.OnRelease = 9 },
		"on_expiry":  func(d *series.Definition) { d.OnExpiry = 9 },
		"expires_in": func(d *series.Definition) { d.ExpiresIn = -1 },
		"max_open":   func(d *series.Definition) { d.MaxOpen = -1 },
		"max_keys":   func(d *series.Definition) { d.MaxKeys = -1 },
		"max_length": func(d *series.Definition) { d.MaxLength = 129 },
		"allowed": func(d *series.Definition) {
			d.Allowed = []*raftlogv1.SeriesAllowed{{Name: "branch", Values: []string{"A"}}}
		},
		"time_zone": func(d *series.Definition) { d.TimeZone = strings.Repeat("x", 65) },
	} {
		d := valid
		change(&d)
		_, err := series.New(d)
		if wrongField(err) != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	s := newSeries(t, series.Definition{Format: "{number:2}", Order: series.OrderDates})
	mustTake(t, s, 1, series.Request{Date: today, Today: today, Keys: []string{"a"}})
	if _, err := s.Confirm(1, []*raftlogv1.SeriesKey{{Key: "a"}}); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*series.Definition){
		"format":     func(d *series.Definition) { d.Format = "{number:3}" },
		"reset":      func(d *series.Definition) { d.Reset = format.ResetYear },
		"order":      func(d *series.Definition) { d.Order = series.OrderAny },
		"on_release": func(d *series.Definition) { d.OnRelease = series.ReleaseReuses },
		"on_expiry":  func(d *series.Definition) { d.OnExpiry = series.ExpiryVoids },
	} {
		d, version := s.Definition()
		change(&d)
		err := s.Redefine(1, d, version)
		if wrongField(err) != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	d, _ := s.Definition()
	for _, err := range []error{s.Redefine(1, d, 7), s.At(1).CheckDelete(7)} {
		if says(err) != "the definition has version 1, not 7" {
			t.Errorf("an old version: %v", err)
		}
	}
}

func TestBadInput(t *testing.T) {
	s := newSeries(t, series.Definition{})
	for _, tt := range []struct {
		field string
		keys  []string
		label string
		in    time.Duration
	}{
		{field: "keys"},
		{field: "keys", keys: make([]string, 1001)},
		{field: "keys", keys: []string{"a", ""}},
		{field: "keys", keys: []string{strings.Repeat("a", 129)}},
		{field: "keys", keys: []string{"a\n"}},
		{field: "keys", keys: []string{"\xff"}},
		{field: "keys", keys: []string{"order-1", "order-1\u200b"}},
		{field: "keys", keys: []string{"\ufeff4711"}},
		{field: "keys", keys: []string{"order\u00ad"}},
		{field: "keys", keys: []string{"order\ufe0f"}},
		{field: "label", keys: []string{"a"}, label: "till\u2060"},
		{field: "keys", keys: []string{"a", "b", "a"}},
		{field: "label", keys: []string{"a"}, label: strings.Repeat("a", 65)},
		{field: "label", keys: []string{"a"}, label: "\u202e"},
		{field: "expires_in", keys: []string{"a"}, in: -1},
		{field: "expires_in", keys: []string{"a"}, in: series.MaxExpiresIn + 1},
	} {
		q := request(tt.keys...)
		q.Label, q.ExpiresIn = tt.label, tt.in
		_, err := s.TakeFor(1, q)
		if wrongField(err) != tt.field {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	for _, reason := range []string{"", strings.Repeat("a", 129), "a\x00"} {
		_, err := s.Void(1, []*raftlogv1.SeriesKey{{Key: "a"}}, reason)
		if wrongField(err) != "reason" {
			t.Errorf("the reason %q: %v", reason, err)
		}
	}
	if len(s.At(1).Report(0, 100, 0)) != 0 {
		t.Error("bad input made a scope")
	}
}

// TestManyKeys: the index finds each of many keys, and none that was given again.
func TestManyKeys(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}", OnRelease: series.ReleaseReuses})
	const all = 20_000
	var bound []*raftlogv1.SeriesKey
	for i := 0; i < all; i += series.MaxKeys {
		q := series.Request{Date: today, Today: today}
		for n := range series.MaxKeys {
			q.Keys = append(q.Keys, fmt.Sprintf("key-%d", i+n))
			bound = append(bound, &raftlogv1.SeriesKey{Key: q.Keys[n]})
		}
		mustTake(t, s, 1, q)
	}
	for i := 0; i < all/2; i += series.MaxKeys {
		if _, err := s.Release(2, bound[i:i+series.MaxKeys]); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < all/2; i += series.MaxKeys {
		q := series.Request{Date: today, Today: today}
		for n := range series.MaxKeys {
			q.Keys = append(q.Keys, fmt.Sprintf("other-%d", i+n))
		}
		if first := mustTake(t, s, 3, q)[0].Number; first != int64(i+1) {
			t.Fatalf("got %d, want %d", first, i+1)
		}
	}
	if err := s.Verify(); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		n, ok := s.At(4).WhoHas(fmt.Sprintf("key-%d", i))
		if ok != (i >= all/2) || ok && n.Number != int64(i+1) {
			t.Fatalf("key %d has %+v, %v", i, n, ok)
		}
	}
}

// TestATakeLooksAtSoManyNumbers that were given back, and then takes new ones: a call for
// several does not hold up others for a gap behind many of one number.
func TestATakeLooksAtSoManyNumbers(t *testing.T) {
	for alone, want := range map[int]int64{998: 2*998 + 1, 1_000: 2_501} {
		s := newSeries(t, series.Definition{Format: "{number}", OnRelease: series.ReleaseReuses})
		fill(t, s, 0, 2_500)
		release := func(i int) {
			if _, err := s.Release(1, []*raftlogv1.SeriesKey{{Key: fmt.Sprintf("invoice-%08d", i)}}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range alone {
			release(2 * i)
		}
		release(2 * alone)
		release(2*alone + 1)
		if got := mustTake(t, s, 1, series.Request{Date: today, Today: today, Keys: []string{"a", "b"}})[0].Number; got != want {
			t.Errorf("behind %d numbers that stand alone: got %d, want %d", alone, got, want)
		}
		if got := mustTake(t, s, 1, series.Request{Date: today, Today: today, Keys: []string{"c"}})[0].Number; got != 1 {
			t.Errorf("a call for one got %d", got)
		}
	}
}

// TestAReportCountsNoOverdueNumberByItself: nothing is applied while it counts. So a
// hundred times as many take hardly longer.
func TestAReportCountsNoOverdueNumberByItself(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const few, many = 500, 50_000
	if short, long := reportTime(t, few), reportTime(t, many); long > 20*short {
		t.Errorf("reports of %d overdue numbers took %s of processor time, and of %d %s", many, long, few, short)
	}
}

// reportTime is the least processor time of some reports on so many overdue numbers.
func reportTime(t *testing.T, overdue int) time.Duration {
	t.Helper()
	s := newSeries(t, series.Definition{Format: "{number}", ExpiresIn: 1})
	fill(t, s, 0, overdue)
	least := time.Hour
	for range 5 {
		used := cputime.Thread()
		for range 200 {
			if all := s.At(1<<40).Report(0, 10, 0); all[0].Overdue != int64(overdue) || all[0].Open != int64(overdue) {
				t.Fatalf("%+v", all)
			}
		}
		least = min(least, cputime.Thread()-used)
	}
	return least
}

// TestAVerificationGoesOnAmongLostKeys: it looks at no more of them at once than of numbers.
func TestAVerificationGoesOnAmongLostKeys(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}", OnRelease: series.ReleaseReuses})
	for i := range 30 {
		key := []*raftlogv1.SeriesKey{{Key: fmt.Sprint("key", i)}}
		mustTake(t, s, 1, series.Request{Date: today, Today: today, Keys: []string{key[0].Key}})
		if _, err := s.Release(1, key); err != nil {
			t.Fatal(err)
		}
	}
	pieces := 0
	for at, more := (series.VerifyCursor{}), true; more; pieces++ {
		var err error
		if at, more, err = s.VerifySome(at, 10); err != nil {
			t.Fatal(err)
		}
	}
	if pieces != 3 {
		t.Errorf("1 number and 29 lost keys in %d pieces", pieces)
	}
}

// TestAListLooksAtSoManyNumbers, and goes on: a state that few have does not hold up others.
func TestAListLooksAtSoManyNumbers(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}"})
	fill(t, s, 0, 2_500)
	if _, err := s.Void(1, []*raftlogv1.SeriesKey{{Key: "invoice-00002499"}}, "torn"); err != nil {
		t.Fatal(err)
	}
	var places []int64
	for above := int64(0); ; {
		found, next, err := s.At(1).Numbers(nil, series.Voided, above, 10)
		if err != nil {
			t.Fatal(err)
		}
		if next == 0 {
			if len(found) != 1 || found[0].Number != 2_500 {
				t.Errorf("found %+v", found)
			}
			break
		}
		places, above = append(places, next), next
	}
	if !slices.Equal(places, []int64{1_000, 2_000}) {
		t.Errorf("went on above %v", places)
	}
	for text, want := range map[string]bool{"2500": true, "2501": false} {
		if n, ok, err := s.At(1).Find(text); err != nil || ok != want || ok && n.Reason != "torn" {
			t.Errorf("%s is %+v, %t, %v", text, n, ok, err)
		}
	}
	if _, _, err := s.At(1).Find("x"); kind(err) != "text is not of the format" {
		t.Errorf("x is found: %v", err)
	}
}
