package bench

import (
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
	CallsPerS    float64          `json:"calls_per_s"`
	IDsPerS      float64          `json:"ids_per_s"`
	P50us        int64            `json:"p50_us"`
	P99us        int64            `json:"p99_us"`
	P999us       int64            `json:"p999_us"`
	MaxUs        int64            `json:"max_us"`
	ErrorReasons map[string]int64 `json:"errors"`
}

// Bounds of what a histogram can tell apart: 1 µs to a minute, 3 digits.
const (
	leastLatency  = 1
	mostLatency   = int64(time.Minute / time.Microsecond)
	latencyDigits = 3
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(leastLatency, mostLatency, latencyDigits)
}

// figures is what one caller measured. Only that caller writes it.
type figures struct {
	latency *hdrhistogram.Histogram
	calls   int64
	ids     int64
	taken   []block
	errors  map[string]int64
}

func newFigures() *figures {
	return &figures{latency: newHistogram(), errors: map[string]int64{}}
}

// answered notes an answered call.
func (f *figures) answered(took time.Duration, taken []block) {
	_ = f.latency.RecordValue(min(max(took.Microseconds(), leastLatency), mostLatency)) // It is within the bounds.
	f.calls++
	for _, b := range taken {
		f.ids += b.last - b.first + 1
	}
	f.taken = append(f.taken, taken...)
}

// add adds another caller's figures.
func (f *figures) add(other *figures) {
	f.latency.Merge(other.latency)
	f.calls += other.calls
	f.ids += other.ids
	f.taken = append(f.taken, other.taken...)
	for reason, n := range other.errors {
		f.errors[reason] += n
	}
}

func (f *figures) report(c Config, took time.Duration) Report {
	s := took.Seconds()
	return Report{
		Op: c.Op, Via: c.Via, Callers: c.Callers, Batch: c.Batch, Names: c.Names, Seconds: s,
		CallsPerS: float64(f.calls) / s, IDsPerS: float64(f.ids) / s,
		P50us: f.latency.ValueAtQuantile(50), P99us: f.latency.ValueAtQuantile(99),
		P999us: f.latency.ValueAtQuantile(99.9), MaxUs: f.latency.Max(), ErrorReasons: f.errors,
	}
}
