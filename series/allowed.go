package series

import (
	"slices"
	"strings"

	"github.com/idnode/idnode/client/docid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// checkTexts finds what of a definition cannot be with its format.
func (d *Definition) checkTexts(f *format.Format) error {
	if err := d.checkAllowed(f); err != nil {
		return err
	}
	if d.MaxLength > format.MaxTextBytes {
		return invalid("max_length", "is not from 0 to 128")
	}
	if d.MaxLength > 0 && f.MostWithin(int(d.MaxLength), d.widths(f)) == 0 {
		return invalid("max_length", "is less than the first texts of the format may have")
	}
	return nil
}

func (d *Definition) checkAllowed(f *format.Format) error {
	seen, count := map[string]bool{}, 0
	for _, a := range d.Allowed {
		i := slices.Index(f.Names(), a.GetName())
		count += len(a.GetValues())
		switch {
		case i < 0:
			return invalid("allowed", "are values of a name that the format does not have")
		case seen[a.GetName()]:
			return invalid("allowed", "have a name twice")
		case len(a.GetValues()) == 0:
			return invalid("allowed", "have no value of {"+a.GetName()+"}")
		case count > MaxAllowed:
			return invalid("allowed", "are more than 100 values")
		}
		seen[a.GetName()] = true
		for _, v := range a.GetValues() {
			if err := f.CheckValue(i, v); err != nil {
				return invalid("allowed", "have a value that no call can give: "+err.Error())
			}
			if seen[ScopeName([]string{a.GetName(), v})] {
				return invalid("allowed", "have a value twice")
			}
			seen[ScopeName([]string{a.GetName(), v})] = true
		}
	}
	return nil
}

// allowedOf returns the values that calls may give for a name; nil is any.
func (d *Definition) allowedOf(name string) []string {
	for _, a := range d.Allowed {
		if a.GetName() == name {
			return a.GetValues()
		}
	}
	return nil
}

// refuseValues finds why calls may not give some values. The error is *Error.
func (d *Definition) refuseValues(f *format.Format, values []string) error {
	for i, name := range f.Names() {
		all := d.allowedOf(name)
		if all != nil && !slices.ContainsFunc(all, func(v string) bool { return docid.Fold(v) == docid.Fold(values[i]) }) {
			return invalid("values", "have "+values[i]+" for {"+name+"}, which is none of "+strings.Join(all, ", "))
		}
	}
	return nil
}

// anyValue reports whether a name of the format has no list of its values.
func (d *Definition) anyValue(f *format.Format) bool {
	return slices.ContainsFunc(f.Names(), func(name string) bool { return d.allowedOf(name) == nil })
}

// widths returns the greatest length of each value that calls may give.
func (d *Definition) widths(f *format.Format) []int {
	all := f.Widths()
	for i, name := range f.Names() {
		if values := d.allowedOf(name); values != nil {
			all[i] = len(slices.MaxFunc(values, func(a, b string) int { return len(a) - len(b) }))
		}
	}
	return all
}

// most returns the greatest number of a scope with some values.
func (d *Definition) most(f *format.Format, values []string) int64 {
	most := mostOf(f)
	if d.MaxLength == 0 {
		return most
	}
	lengths := make([]int, len(values))
	for i := range values {
		lengths[i] = len(values[i])
	}
	return min(most, f.MostWithin(int(d.MaxLength), lengths))
}

// Begun reports whether the first number of a scope is among some, and may be there by a value that is mistyped: no
// period before has its values, and they are not those of a list.
func (s *Series) Begun(numbers []*raftlogv1.SeriesNumber) bool {
	if !s.definition.anyValue(s.format) {
		return false
	}
	for _, n := range numbers {
		c := s.scopes.lookUp(n.GetScope())
		if c != nil && n.GetNumber() == c.numberOf(c.offset+1) && s.scopes.periodBefore(c) == nil {
			return true
		}
	}
	return false
}
