package result

import (
	"maps"
	"slices"
)

// Series is one value for each run that has it, by the run's number.
type Series map[int]float64

// Spread is a series in short.
type Spread struct{ Median, Min, Max float64 }

// Spread returns the median and the extremes; ok is false if there is no value.
func (s Series) Spread() (spread Spread, ok bool) {
	if len(s) == 0 {
		return Spread{}, false
	}
	values := slices.Sorted(maps.Values(s))
	n := len(values)
	return Spread{
		Median: (values[(n-1)/2] + values[n/2]) / 2,
		Min:    values[0],
		Max:    values[n-1],
	}, true
}

// Over divides run by run: what drifts from one run to the next is then in both
// sides of each ratio. Runs that lack either side are left out.
func (s Series) Over(other Series) Series {
	return s.with(other, func(a, b float64) float64 { return a / b })
}

// Plus adds run by run. Runs that lack either side are left out.
func (s Series) Plus(other Series) Series {
	return s.with(other, func(a, b float64) float64 { return a + b })
}

func (s Series) with(other Series, combine func(a, b float64) float64) Series {
	combined := Series{}
	for run, a := range s {
		if b, both := other[run]; both {
			combined[run] = combine(a, b)
		}
	}
	return combined
}
