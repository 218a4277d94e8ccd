package bench

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is what was measured. Times are in microseconds.
type Report struct {
	Op           string           `json:"op"`
	Via          string           `json:"via"`
	Callers      int              `json:"callers"`
	Batch        int              `json:"batch"`
	Names        int              `json:"names"`
	Seconds      float64          `json:"seconds"`
	CallsPerS    float64          `json:"callsPerS"`
	IDsPerS      float64          `json:"idsPerS"`
	P50us        int64            `json:"p50Us"`
	P99us        int64            `json:"p99Us"`
	P999us       int64            `json:"p999Us"`
	MaxUs        int64            `json:"maxUs"`
	ErrorReasons map[string]int64 `json:"errors"`
}

// Bounds of what a histogram can tell apart: 1 µs to a minute, 3 digits.
const (
	leastLatency  = 1
	mostLatency   = int64(time.Minute / time.Microsecond)
	latencyDigits = 3
)

// stats is what one caller measured. Only that caller writes it.
type stats struct {
	latency *hdrhistogram.Histogram
	ids     int64
	taken   []block
	errors  map[string]int64
}

func newStats() *stats {
	return &stats{latency: hdrhistogram.New(leastLatency, mostLatency, latencyDigits), errors: map[string]int64{}}
}

func (s *stats) answered(took time.Duration, taken []block) {
	_ = s.latency.RecordValue(min(max(took.Microseconds(), leastLatency), mostLatency)) // It is within the bounds.
	for _, b := range taken {
		s.ids += b.last - b.first + 1
	}
	s.taken = append(s.taken, taken...)
}

func (s *stats) add(other *stats) {
	s.latency.Merge(other.latency)
	s.ids += other.ids
	s.taken = append(s.taken, other.taken...)
	for reason, n := range other.errors {
		s.errors[reason] += n
	}
}

func (s *stats) report(c Config, took time.Duration) Report {
	seconds := took.Seconds()
	return Report{
		Op: c.Op, Via: c.Via, Callers: c.Callers, Batch: c.Batch, Names: c.Names, Seconds: seconds,
		CallsPerS: float64(s.latency.TotalCount()) / seconds, IDsPerS: float64(s.ids) / seconds,
		P50us: s.latency.ValueAtQuantile(50), P99us: s.latency.ValueAtQuantile(99),
		P999us: s.latency.ValueAtQuantile(99.9), MaxUs: s.latency.Max(), ErrorReasons: s.errors,
	}
}

// block is a run of numbers of one counter. A GUID is a block too: its counter
// is its first half, its number the second.
type block struct {
	counter     uint64
	first, last int64
}

// guidBlock returns a GUID as a block of one number.
func guidBlock(text string) (block, error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != 16 {
		return block{}, fmt.Errorf("%q is no GUID", text)
	}
	var halves [2]uint64
	for i, b := range raw {
		halves[i/8] = halves[i/8]<<8 | uint64(b)
	}
	return block{counter: halves[0], first: int64(halves[1]), last: int64(halves[1])}, nil
}

// checkUnique returns an error that names an id that came twice. It sorts all.
func checkUnique(all []block) error {
	slices.SortFunc(all, func(a, b block) int {
		return cmp.Or(cmp.Compare(a.counter, b.counter), cmp.Compare(a.first, b.first))
	})
	for i := 1; i < len(all); i++ {
		before, after := all[i-1], all[i]
		if before.counter == after.counter && after.first <= before.last {
			return fmt.Errorf("an id came twice: number %d of counter %d is in the blocks %d–%d and %d–%d",
				after.first, after.counter, before.first, before.last, after.first, after.last)
		}
	}
	return nil
}
