package format

import "strings"

// Samples returns a value for each name, to show what texts look like: the name in capital
// letters, as long as the format wants it.
func (f *Format) Samples() []string {
	var all []string
	for _, p := range f.values {
		sample := strings.ToUpper(strings.ReplaceAll(p.text, "-", ""))
		if !p.varies() {
			sample = strings.Repeat(sample, p.most)[:p.most]
		}
		all = append(all, sample)
	}
	return all
}

// BeginsAgain returns the first day of the period after that of a date; false if there is none.
func (f *Format) BeginsAgain(after Date) (Date, bool) {
	if f.reset == ResetNever {
		return 0, false
	}
	this := f.period(after.time())
	for d := after + 1; d.Valid(); d++ {
		if f.period(d.time()) != this {
			return d, true
		}
	}
	return 0, false
}
