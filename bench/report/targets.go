package report

import (
	"fmt"

	"github.com/idnode/idnode/bench/generator"
	"github.com/idnode/idnode/bench/result"
)

// target is a figure that idnode holds itself to.
type target struct {
	what string
	// bound is the least, or the most, that the median may be.
	bound  float64
	atMost bool
	// unit stands behind the figure.
	unit   string
	format func(float64) string
	figure func(r result.Results) result.Series
}

func ratio(what string, least float64, figure func(r result.Results) result.Series) target {
	return target{what: what, bound: least, unit: " ×", format: fixed, figure: figure}
}

func most(t target) target {
	t.atMost = true
	return t
}

// faster compares rates with as many callers.
func faster(a, b row, callers int, least float64) target {
	return ratio(fmt.Sprintf("%s / %s, %d callers", a.label, b.label, callers), least, func(r result.Results) result.Series {
		return a.rate(r, callers).Over(b.rate(r, callers))
	})
}

// reaches is a rate for itself.
func reaches(a row, callers int, least float64) target {
	return target{
		what: fmt.Sprintf("%s, %d callers", a.label, callers), bound: least, unit: " ids/s", format: number,
		figure: func(r result.Results) result.Series { return a.rate(r, callers) },
	}
}

func nsPerID(r result.Results, name string, goroutines int) result.Series {
	return r.Generators(name, goroutines, func(f generator.Stats) float64 { return f.NsPerID })
}

// allocates is how often a generator allocates.
func allocates(name string, bound float64) target {
	return target{
		what: name + ", one goroutine", bound: bound, atMost: true, unit: " allocations", format: plain,
		figure: func(r result.Results) result.Series {
			return r.Generators(name, 1, func(f generator.Stats) float64 { return float64(f.AllocsPerID) })
		},
	}
}

// targets are all, in the order they are shown.
var targets = []target{
	faster(unary, etcd, 64, 1.5),
	faster(unary, etcd, 512, 2),
	faster(unary, echo, 64, 0.45),
	faster(unary, echo, 512, 0.7),
	faster(client, etcd, 64, 3),
	faster(client, etcd, 512, 8),
	faster(unary100, etcd, 64, 30),
	faster(unary100, etcd, 512, 30),
	faster(stream100, etcd, 64, 30),
	faster(stream100, etcd, 512, 30),
	most(ratio("one caller at the leader: p50 of an identity / (p50 of a bare Raft apply + p50 of an empty gRPC call)", 1.3,
		func(r result.Results) result.Series {
			return unary.p50(r, 1).Over(bareRaft.p50(r, 1).Plus(echo.p50(r, 1)))
		})),
	most(ratio("one caller at the leader: p50 of an identity / p50 of a put at etcd's leader", 1,
		func(r result.Results) result.Series { return unary.p50(r, 1).Over(etcd.p50(r, 1)) })),
	faster(serverSide, echo, 64, 0.9),
	faster(serverSide, echo, 512, 0.9),
	reaches(unary1k, 64, 5e6),
	reaches(unary1k, 512, 5e6),
	reaches(stream1k, 64, 5e6),
	reaches(stream1k, 512, 5e6),
	faster(seriesTake, numberRow, 64, 5),
	faster(seriesTake, lockedRow, 64, 50),
	faster(seriesTake, unary, 64, 0.8),
	ratio("HiLo number, one goroutine: its rate / that of an atomic add", 0.5, func(r result.Results) result.Series {
		return nsPerID(r, generator.AtomicAdd, 1).Over(nsPerID(r, generator.HiLoNumber, 1))
	}),
	allocates(generator.HiLoNumber, 0),
	most(ratio("HiLo number: time per id with eight goroutines / with one", 4, func(r result.Results) result.Series {
		return nsPerID(r, generator.HiLoNumber, 8).Over(nsPerID(r, generator.HiLoNumber, 1))
	})),
	allocates(generator.HiLoString, 1),
	ratio("HiLo string, one goroutine: its rate / that of a UUIDv7 string", 2, func(r result.Results) result.Series {
		return nsPerID(r, generator.UUIDv7, 1).Over(nsPerID(r, generator.HiLoString, 1))
	}),
}

// verdict says whether the median keeps to the bound.
func (t target) verdict(s result.Series) string {
	sp, ok := s.Spread()
	switch {
	case !ok:
		return "not measured"
	case t.atMost && sp.Median > t.bound, !t.atMost && sp.Median < t.bound:
		return "**missed**"
	}
	return "met"
}

func (t target) limit() string {
	sign := "≥ "
	if t.atMost {
		sign = "≤ "
	}
	return sign + plain(t.bound) + t.unit
}

func targetTable(r result.Results) string {
	var lines [][]string
	for _, t := range targets {
		s := t.figure(r)
		lines = append(lines, []string{t.what, t.limit(), spread(s, t.format), t.verdict(s)})
	}
	return table([]string{"what", "target", "measured", ""}, lines)
}
