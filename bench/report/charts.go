package report

import (
	"fmt"

	"github.com/idnode/idnode/bench/generator"
	"github.com/idnode/idnode/bench/result"
)

func rateChart(r result.Results) chart {
	c := chart{
		title: "Ids a second, on a logarithmic scale",
		note:  "Medians; the thin lines go from the least to the most. More is better.",
		legend: []legend{
			{ours, "idnode, 3 nodes"}, {floor, "an empty gRPC call"}, {cluster, "others, 3 members"}, {single, "others, 1 server, not replicated"},
		},
	}
	for _, callers := range allCallers {
		p := panel{title: fmt.Sprintf("%d callers", callers)}
		if callers == 1 {
			p.title = "1 caller, at the leader"
		}
		for _, w := range rows {
			p.add(w.label, w.class, w.rate(r, callers))
		}
		c.panels = append(c.panels, p)
	}
	return c
}

func generatorChart(r result.Results) chart {
	c := chart{
		title: "Nanoseconds for one id inside a process, on a logarithmic scale",
		note:  "Medians; the thin lines go from the least to the most. Less is better.",
		legend: []legend{
			{ours, "idnode's generator"}, {floor, "counting, and nothing else"}, {single, "others"},
		},
	}
	for _, goroutines := range []int{1, 8} {
		p := panel{title: map[int]string{1: "1 goroutine", 8: "8 goroutines share one generator"}[goroutines]}
		for i, name := range generator.Names() {
			p.add(name, generatorClass(name, i), nsPerID(r, name, goroutines))
		}
		c.panels = append(c.panels, p)
	}
	return c
}

// generatorClass: the first two count only.
func generatorClass(name string, i int) class {
	switch {
	case name == generator.HiLoNumber || name == generator.HiLoString:
		return ours
	case i < 2:
		return floor
	}
	return single
}

// add adds a bar, if there is anything to show.
func (p *panel) add(label string, c class, s result.Series) {
	if sp, ok := s.Spread(); ok && sp.Min > 0 {
		p.bars = append(p.bars, bar{label, c, sp})
	}
}
