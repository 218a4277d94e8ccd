package series

import (
	"slices"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// checkBegins finds a scope that cannot begin at a number.
func (s *Series) checkBegins(begins []*raftlogv1.SeriesBegin) error {
	if len(begins) > MaxBegins {
		return invalid("begins", "are more than 1000")
	}
	seen, more := map[string]bool{}, 0
	for _, b := range begins {
		detail, known := s.wrongBegin(b)
		switch {
		case detail != "":
		case seen[scopeName(b.GetScope())]:
			detail = "have a scope twice"
		case !known && b.GetFirst() > 1:
			more++
		}
		if detail != "" {
			return invalid("begins", detail+": "+name(b.GetScope()))
		}
		seen[scopeName(b.GetScope())] = true
	}
	if s.scopes.len+more > MaxScopes {
		return full(MaxScopes, "scopes")
	}
	return nil
}

// wrongBegin says why a scope cannot begin at a number, and whether there is such a scope.
func (s *Series) wrongBegin(b *raftlogv1.SeriesBegin) (detail string, known bool) {
	if b.GetFirst() < 1 || b.GetFirst() > s.most() {
		return "have a number that is none of the format", false
	}
	c := s.lookUp(b.GetScope())
	if c == nil {
		if _, _, err := s.format.ParseScope(b.GetScope()); err != nil {
			return "have a scope that is not one of the format", false
		}
		return "", false
	}
	switch {
	case c.offset == b.GetFirst()-1: // As it is.
	case !c.empty():
		return "have a scope that has numbers", true
	case c.closed:
		return "have a scope that is closed", true
	}
	return "", true
}

// moveTo has scopes begin where they are asked to, once they are checked.
func (s *Series) moveTo(begins []*raftlogv1.SeriesBegin) {
	for _, b := range begins {
		c, err := s.scopeOf(b.GetScope())
		if err != nil || b.GetFirst() == 1 && c.index == s.scopes.len {
			continue // Nothing is said of a scope that is not there.
		}
		s.begin(c)
		if c.empty() {
			s.scopes.own(c.index).moveTo(b.GetFirst() - 1)
		}
	}
}

// begun reports whether scopes begin where they are asked to.
func (s *Series) begun(begins []*raftlogv1.SeriesBegin) bool {
	return !slices.ContainsFunc(begins, func(b *raftlogv1.SeriesBegin) bool {
		c := s.lookUp(b.GetScope())
		return c != nil && c.offset != b.GetFirst()-1 || c == nil && b.GetFirst() != 1
	})
}
