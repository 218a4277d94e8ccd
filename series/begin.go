package series

import "slices"

// Begin is where a scope begins whose earlier numbers are not of this series.
type Begin struct {
	// Scope has the period, where numbers begin again, and the scope values.
	Scope []string
	// First is the scope's first number. 1 takes back what was said before.
	First int64
}

// checkBegins finds a scope that cannot begin at a number.
func (s *Series) checkBegins(begins []Begin) error {
	if len(begins) > MaxBegins {
		return &InvalidError{Field: "begins", Detail: "are more than 1000"}
	}
	seen, more := map[string]bool{}, 0
	for i, b := range begins {
		detail, known := s.wrongBegin(b)
		switch {
		case detail != "":
		case seen[scopeName(b.Scope)]:
			detail = "have a scope twice"
		case !known && b.First > 1:
			more++
		}
		if detail != "" {
			return &InvalidError{Field: "begins", Index: i, Detail: detail + ": " + name(b.Scope)}
		}
		seen[scopeName(b.Scope)] = true
	}
	if s.scopes.len+more > MaxScopes {
		return &FullError{What: "scopes", Limit: MaxScopes}
	}
	return nil
}

// wrongBegin says why a scope cannot begin at a number, and whether there is such a scope.
func (s *Series) wrongBegin(b Begin) (detail string, known bool) {
	if b.First < 1 || b.First > s.most() {
		return "have a number that is none of the format", false
	}
	c, err := s.find(b.Scope)
	if err != nil {
		if _, _, err := s.format.ParseScope(b.Scope); err != nil {
			return "have a scope that is not one of the format", false
		}
		return "", false
	}
	switch {
	case c.offset == b.First-1: // As it is.
	case !c.empty():
		return "have a scope that has numbers", true
	case c.closed:
		return "have a scope that is closed", true
	}
	return "", true
}

// moveTo has scopes begin where they are asked to, once they are checked.
func (s *Series) moveTo(begins []Begin) {
	for _, b := range begins {
		c, err := s.scopeOf(b.Scope)
		if err != nil || b.First == 1 && c.index == s.scopes.len {
			continue // Nothing is said of a scope that is not there.
		}
		s.begin(c)
		if c.empty() {
			s.scopes.own(c.index).moveTo(b.First - 1)
		}
	}
}

// begun reports whether scopes begin where they are asked to.
func (s *Series) begun(begins []Begin) bool {
	return !slices.ContainsFunc(begins, func(b Begin) bool {
		c, err := s.find(b.Scope)
		return err == nil && c.offset != b.First-1 || err != nil && b.First != 1
	})
}
