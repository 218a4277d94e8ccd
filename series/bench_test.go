package series_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// fill takes numbers for keys of 16 bytes, without scope values.
func fill(tb testing.TB, s *series.Series, from, to int) {
	for i := from; i < to; i += 100 {
		q := series.Request{Date: today, Today: today}
		for n := i; n < i+100; n++ {
			q.Keys = append(q.Keys, fmt.Sprintf("invoice-%08d", n))
		}
		if _, err := s.TakeFor(int64(i+1), q); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkMemory measures the heap for a key beyond its text of 16 bytes: of numbers
// whose time does not end, and of open ones whose time does.
func BenchmarkMemory(b *testing.B) {
	for _, keys := range []int{100_000, 1_000_000} {
		for _, in := range []time.Duration{0, time.Hour} {
			b.Run(fmt.Sprintf("keys=%d/expires=%v", keys, in), func(b *testing.B) {
				for b.Loop() {
					before := heap()
					s := newSeries(b, series.Definition{Format: "{number}", ExpiresIn: in})
					fill(b, s, 0, keys)
					b.ReportMetric(float64(heap()-before)/float64(keys)-16, "bytes/key")
					runtime.KeepAlive(s)
				}
			})
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkGrowth takes 1,000 numbers of a series that has so many keys, one a call, and
// measures the heap for a key beyond its text. Run it with -benchtime=1x: each repetition
// fills the series anew. 10,000,000 keys take some 2 GB, and are left out by -short.
func BenchmarkGrowth(b *testing.B) {
	for _, keys := range []int{1_000, 100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			if testing.Short() && keys > 1_000_000 {
				b.Skip("takes gigabytes")
			}
			for b.Loop() {
				before := heap()
				s := newSeries(b, series.Definition{Format: "{number}"})
				fill(b, s, 0, keys)
				b.ReportMetric(float64(heap()-before)/float64(keys)-16, "bytes/key")
				took := takeEach(b, s, 1_000)
				b.ReportMetric(float64(took[len(took)/2]), "p50-ns/take")
				b.ReportMetric(float64(took[len(took)-1]), "longest-ns/take")
			}
		})
	}
}

// takeEach takes count numbers for new keys, one a call, and returns the calls' times,
// ascending.
func takeEach(b *testing.B, s *series.Series, count int) (took []time.Duration) {
	for i := range count {
		q := series.Request{Date: today, Today: today, Keys: []string{fmt.Sprintf("document-%d", i)}}
		begin := time.Now()
		if _, err := s.TakeFor(1, q); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took
}

// BenchmarkTake takes one number a call, and confirms it: of numbers whose time does not end,
// and of those whose time does.
func BenchmarkTake(b *testing.B) {
	for _, keys := range []int{0, 1_000_000} {
		for _, in := range []time.Duration{0, time.Hour} {
			b.Run(fmt.Sprintf("keys=%d/expires=%v", keys, in), func(b *testing.B) {
				s := newSeries(b, series.Definition{Format: "{number}", ExpiresIn: in})
				fill(b, s, 0, keys)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					key := fmt.Sprintf("document-%d", i)
					if _, err := s.TakeFor(1, series.Request{Date: today, Today: today, Keys: []string{key}}); err != nil {
						b.Fatal(err)
					}
					if _, err := s.Confirm(1, []*raftlogv1.SeriesKey{{Key: key}}); err != nil {
						b.Fatal(err)
					}
					i++
				}
			})
		}
	}
}

// BenchmarkExpired takes a number of a series all of whose numbers have expired.
func BenchmarkExpired(b *testing.B) {
	for _, keys := range []int{1_000, 1_000_000} {
		for _, policy := range []series.OnExpiry{series.ExpiryReports, series.ExpiryVoids, series.ExpiryReuses} {
			b.Run(fmt.Sprintf("keys=%d/policy=%d", keys, policy), func(b *testing.B) {
				var longest time.Duration
				for b.Loop() {
					b.StopTimer()
					s := newSeries(b, series.Definition{Format: "{number}", ExpiresIn: time.Hour, OnExpiry: policy, MaxOpen: 2_000_000})
					fill(b, s, 0, keys)
					b.StartTimer()
					begin := time.Now()
					if _, err := s.TakeFor(int64(2*time.Hour), series.Request{Date: today, Today: today, Keys: []string{"late"}}); err != nil {
						b.Fatal(err)
					}
					longest = max(longest, time.Since(begin))
				}
				b.ReportMetric(float64(longest), "longest-ns/take")
			})
		}
	}
}

// BenchmarkFreeze freezes a series of so many scopes of one number.
func BenchmarkFreeze(b *testing.B) {
	for _, scopes := range []int{1_000, 500_000} {
		b.Run(fmt.Sprintf("scopes=%d", scopes), func(b *testing.B) {
			before := heap()
			s := newSeries(b, series.Definition{Format: "{branch}-{number}"})
			for i := range scopes {
				q := series.Request{Date: today, Today: today, Keys: []string{fmt.Sprintf("%016d", i)}, Values: []string{fmt.Sprintf("%07d", i)}}
				if _, err := s.TakeFor(1, q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(heap()-before)/float64(scopes), "bytes/scope")
			for b.Loop() {
				s.Freeze()
			}
		})
	}
}

// BenchmarkTooManyOpen refuses a call because too many numbers are open: the lowest is behind
// many that are final, and behind one that is taken again and again.
func BenchmarkTooManyOpen(b *testing.B) {
	for _, keys := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			s := newSeries(b, series.Definition{Format: "{number}", OnExpiry: series.ExpiryReuses, MaxOpen: 101})
			take := func(now int64, key string, in time.Duration) {
				if _, err := s.TakeFor(now, series.Request{Keys: []string{key}, Date: today, Today: today, ExpiresIn: in}); err != nil {
					b.Fatal(err)
				}
			}
			take(1, "x", time.Hour)
			for i := 0; i < keys; i += 100 {
				fill(b, s, i, i+100)
				for n := i; n < i+100; n++ {
					if _, err := s.Confirm(1, []*raftlogv1.SeriesKey{{Key: fmt.Sprintf("invoice-%08d", n)}}); err != nil {
						b.Fatal(err)
					}
				}
			}
			fill(b, s, keys, keys+100)
			now := int64(2 * time.Hour)
			for b.Loop() {
				now += 2 * int64(time.Minute)
				take(now, "x", time.Minute)
				if _, err := s.TakeFor(now+int64(time.Minute), series.Request{Keys: []string{"a", "b"}, Date: today, Today: today}); err == nil {
					b.Fatal("taken")
				}
			}
		})
	}
}
