package format

import "unicode/utf8"

// Widths returns the greatest length of each value, in the order of Names.
func (f *Format) Widths() []int {
	all := make([]int, len(f.values))
	for i := range f.values {
		all[i] = f.values[i].most
	}
	return all
}

// MostWithin returns the greatest number whose text has at most length characters with values of
// some lengths; 0 if none has.
func (f *Format) MostWithin(length int, values []int) int64 {
	for _, n := range values {
		length -= n
	}
	var digits *part
	for i := range f.parts {
		switch p := &f.parts[i]; p.kind {
		case literal:
			length -= utf8.RuneCountInString(p.text)
		case number:
			digits = p
		case value:
		default:
			length -= p.most
		}
	}
	switch {
	case length < digits.least:
		return 0
	case length >= digits.most:
		return f.most
	}
	return greatest(length)
}

// greatest returns the greatest number of so many digits, which are at most MaxDigits.
func greatest(digits int) int64 {
	most := int64(1)
	for range digits {
		most *= 10
	}
	return most - 1
}

// CheckValue finds why a text cannot be the value of a name by its index. The error is a *Error.
func (f *Format) CheckValue(i int, v string) error { return f.values[i].checkValue(v) }
