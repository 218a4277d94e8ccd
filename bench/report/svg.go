package report

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"

	"github.com/idnode/idnode/bench/result"
)

// chart is horizontal bars on a logarithmic scale, in panels below each other
// that share the scale.
type chart struct {
	title, note string
	legend      []legend
	panels      []panel
}

type legend struct {
	class class
	label string
}

type panel struct {
	title string
	bars  []bar
}

type bar struct {
	label  string
	class  class
	spread result.Spread
}

// Sizes in pixels.
const (
	chartWidth  = 900
	plotLeft    = 290 // labels stand left of it
	plotRight   = 810 // values of the longest bars stand right of it
	headHeight  = 92
	titleHeight = 34
	barStep     = 22
	barHeight   = 14
	axisHeight  = 30
)

// style has colours for both of a reader's settings, and a ground of its own, so
// that the plot can be read wherever it is shown.
const style = `
.ground{fill:#fcfcfb}text{font:13px system-ui,sans-serif;fill:#1f1f1e}.title{font-size:17px;font-weight:600}
.panel{font-weight:600}.small{font-size:12px;fill:#62625e}.grid{stroke:#e2e2de}.range{stroke:#1f1f1e}
.idnode{fill:#2a78d6}.cluster{fill:#7a7a75}.single{fill:#b9b9b3}.floor{fill:#d9a441}
@media (prefers-color-scheme:dark){.ground{fill:#1a1a19}text{fill:#ececea}.small{fill:#a5a5a0}.grid{stroke:#3a3a37}
.range{stroke:#ececea}.idnode{fill:#4a93ea}.cluster{fill:#95958f}.single{fill:#5f5f5a}.floor{fill:#c48f2c}}
`

// scale turns values into places on the axis, which runs over whole decades.
type scale struct{ low, high float64 } // powers of ten

func (c chart) scale() scale {
	s := scale{math.Inf(1), math.Inf(-1)}
	for _, p := range c.panels {
		for _, b := range p.bars {
			s.low = min(s.low, math.Floor(math.Log10(b.spread.Min)))
			s.high = max(s.high, math.Ceil(math.Log10(b.spread.Max)))
		}
	}
	if s.low >= s.high { // no bars, or all of them at the same power of ten
		return scale{0, 1}
	}
	return s
}

func (s scale) x(v float64) float64 {
	return plotLeft + (math.Log10(v)-s.low)/(s.high-s.low)*(plotRight-plotLeft)
}

// svg draws the chart.
func (c chart) svg() string {
	height := headHeight
	for _, p := range c.panels {
		height += p.height()
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`+"\n", chartWidth, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n", escape(c.title), escape(c.note), style)
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d"/>`+"\n", chartWidth, height)
	text(&b, 16, 26, "title", "start", c.title)
	text(&b, 16, 46, "small", "start", c.note)
	c.drawLegend(&b)
	y := headHeight
	for _, p := range c.panels {
		p.draw(&b, c.scale(), y)
		y += p.height()
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c chart) drawLegend(b *strings.Builder) {
	x := 16
	for _, l := range c.legend {
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="60" width="12" height="12" rx="2"/>`+"\n", l.class, x)
		text(b, float64(x+18), 71, "", "start", l.label)
		x += 48 + 7*len(l.label) // about as wide as the text
	}
}

func (p panel) height() int { return titleHeight + barStep*len(p.bars) + axisHeight }

func (p panel) draw(b *strings.Builder, s scale, y int) {
	text(b, 16, float64(y+20), "panel", "start", p.title)
	top, bottom := y+titleHeight-4, y+titleHeight+barStep*len(p.bars)
	for power := s.low; power <= s.high; power++ {
		x := s.x(math.Pow(10, power))
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", x, top, x, bottom)
		text(b, x, float64(bottom+15), "small", "middle", commas(fmt.Sprintf("%.0f", math.Pow(10, power))))
	}
	for i, bar := range p.bars {
		bar.draw(b, s, y+titleHeight+barStep*i)
	}
}

func (r bar) draw(b *strings.Builder, s scale, y int) {
	least, median, most := s.x(r.spread.Min), s.x(r.spread.Median), s.x(r.spread.Max)
	baseline := float64(y + barHeight - 3)
	text(b, plotLeft-8, baseline, "", "end", r.label)
	fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", r.class, plotLeft, y, median-plotLeft, barHeight)
	middle := y + barHeight/2
	fmt.Fprintf(b, `<line class="range" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", least, middle, most, middle)
	text(b, most+6, baseline, "", "start", number(r.spread.Median))
}

func text(b *strings.Builder, x, y float64, class, anchor, s string) {
	fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, escape(s))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // A Builder takes everything.
	return b.String()
}
