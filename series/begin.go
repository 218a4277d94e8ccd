package series

import (
	"slices"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// checkBegins finds a scope that cannot begin at a number.
func (x *contents) checkBegins(d *Definition, begins []*raftlogv1.SeriesBegin) error {
	if len(begins) > MaxBegins {
		return invalid("begins", "are more than 1000")
	}
	seen, more := map[string]bool{}, 0
	for _, b := range begins {
		detail := x.wrongBegin(d, b)
		if detail == "" && seen[ScopeName(b.GetScope())] {
			detail = "have a scope twice"
		}
		if detail != "" {
			return invalid("begins", detail+": "+name(b.GetScope()))
		}
		if b.GetFirst() > 1 && x.scopes.lookUp(b.GetScope()) == nil {
			more++
		}
		seen[ScopeName(b.GetScope())] = true
	}
	if x.scopes.len()+more > MaxScopes {
		return full(MaxScopes, "scopes")
	}
	return nil
}

// wrongBegin says why a scope cannot begin at a number.
func (x *contents) wrongBegin(d *Definition, b *raftlogv1.SeriesBegin) string {
	if b.GetFirst() < 1 || b.GetFirst() > x.most() {
		return "have a number that the format cannot show"
	}
	_, values, err := x.format.ParseScope(b.GetScope())
	switch c := x.scopes.lookUp(b.GetScope()); {
	case c == nil && err != nil:
		return "have a scope that is not one of the format"
	case c != nil && c.offset == b.GetFirst()-1: // It is as it is.
		return ""
	case d.refuseValues(x.format, values) != nil:
		return "have a scope with a value that is not allowed"
	case b.GetFirst() > d.most(x.format, values):
		return "have a number whose text is longer than max_length"
	case c == nil:
		return ""
	case !c.empty():
		return "have a scope that has numbers"
	case !c.allotted.none():
		return "have a scope with allotments"
	case c.closed:
		return "have a scope that is closed"
	}
	return ""
}

// moveTo has scopes begin where they are asked to, once they are checked.
func (x *contents) moveTo(begins []*raftlogv1.SeriesBegin) {
	for _, b := range begins {
		c, err := x.scopeOf(b.GetScope())
		if err != nil || b.GetFirst() == 1 && !x.scopes.has(c) {
			continue // Nothing is said of a scope that is not there.
		}
		if c = x.scopes.begin(c); c.empty() {
			c.moveTo(b.GetFirst() - 1)
		}
	}
}

// begun reports whether scopes begin where they are asked to.
func (x *contents) begun(begins []*raftlogv1.SeriesBegin) bool {
	return !slices.ContainsFunc(begins, func(b *raftlogv1.SeriesBegin) bool {
		c := x.scopes.lookUp(b.GetScope())
		return c != nil && c.offset != b.GetFirst()-1 || c == nil && b.GetFirst() != 1
	})
}
