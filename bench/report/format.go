package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/idnode/idnode/bench/result"
)

// number writes a number with three significant digits, and commas.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := int(math.Floor(math.Log10(math.Abs(v)))) + 1
	if digits <= 3 {
		text := strconv.FormatFloat(v, 'f', 3-digits, 64)
		if digits == 3 { // 999.6 has become 1000.
			return commas(text)
		}
		return text
	}
	scale := math.Pow10(digits - 3)
	return commas(strconv.FormatFloat(math.Round(v/scale)*scale, 'f', 0, 64))
}

// commas parts groups of three digits.
func commas(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// plain writes a number with as many digits as it has, and commas.
func plain(v float64) string {
	if v == math.Trunc(v) {
		return commas(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// fixed writes a ratio.
func fixed(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// spread writes the median and, if there is more than one value, the extremes.
func spread(s result.Series, format func(float64) string) string {
	sp, ok := s.Spread()
	switch {
	case !ok:
		return "–"
	case len(s) == 1:
		return format(sp.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", format(sp.Median), format(sp.Min), format(sp.Max))
}

// table writes a table; all columns but the first are numbers.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(head)
	b.WriteString("|---|" + strings.Repeat("---:|", len(head)-1) + "\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}
