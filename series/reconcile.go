package series

import "cmp"

// Reconcile says what the books have of unknown numbers of a scope, of all or none. One with
// a key is confirmed for it. One without a key is voided: no document has it. The reason is
// ReasonNotInBooks unless another one is given. A number that is what is said already stays
// as it is.
//
// A number that its key has kept is confirmed for no other one, for no other key can have
// got it.
//
// The errors are *InvalidError, *UnknownScopeError, *ConflictError for a key with another
// number, and *StateError.
func (s *Series) Reconcile(now int64, values []string, books []Bound, reason string) ([]Number, error) {
	reason = cmp.Or(reason, ReasonNotInBooks)
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	if err := checkReconciled(books); err != nil {
		return nil, err
	}
	c, err := s.find(values)
	if err != nil {
		return nil, err
	}
	now = s.advance(now)
	for _, b := range books {
		if err := s.judgeReconciled(now, c, b); err != nil {
			return nil, err
		}
	}
	c = s.scopes.own(c.index)
	numbers := make([]Number, len(books))
	for i, b := range books {
		if c.at(b.Number).state == Unknown {
			s.reconcile(now, c, b, reason)
		}
		numbers[i] = s.number(c, b.Number, now)
	}
	return numbers, nil
}

// checkReconciled refuses what can be said of no scope.
func checkReconciled(books []Bound) error {
	invalid := func(detail string) error { return &InvalidError{Field: "numbers", Detail: detail} }
	if len(books) < 1 || len(books) > MaxKeys {
		return invalid("are not 1 to 1000")
	}
	seen := make(map[int64]bool, len(books))
	keys := make([]string, 0, len(books))
	for _, b := range books {
		if seen[b.Number] {
			return invalid("have one twice")
		}
		seen[b.Number] = true
		if b.Key != "" {
			keys = append(keys, b.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return checkKeys(keys)
}

// judgeReconciled refuses what cannot be said of a number.
func (s *Series) judgeReconciled(now int64, c *scope, b Bound) error {
	if b.Number <= c.offset || b.Number > c.last {
		return &InvalidError{Field: "numbers", Detail: "have one that is none of the scope"}
	}
	r := c.at(b.Number)
	if b.Key != "" {
		if other, ok := s.keptBy(b.Key, now); ok && other != refOf(c.index, b.Number) {
			return &ConflictError{First: s.number(s.scopes.at(other.scope()), other.number(), now)}
		}
	}
	switch state, reason := s.stateOf(r, now); {
	case state == Unknown && r.owner() != "" && b.Key != "" && b.Key != r.key():
		return &ConflictError{First: s.number(c, b.Number, now)}
	case state == Unknown, state == Confirmed && b.Key == r.key(), state == Voided && b.Key == "" && r.key() == "":
		return nil
	default:
		return &StateError{Key: r.key(), Number: b.Number, State: state, Reason: reason}
	}
}

// keptBy returns the number of a key; false if it has none, or has released it.
func (s *Series) keptBy(key string, now int64) (ref, bool) {
	at := s.index.find(key)
	if at == 0 {
		return 0, false
	}
	state, _ := s.stateOf(s.scopes.at(at.scope()).at(at.number()), now)
	return at, state != Released
}

// reconcile ends an unknown number.
func (s *Series) reconcile(now int64, c *scope, b Bound, reason string) {
	r := c.at(b.Number)
	switch own := r.owner(); {
	case own != "" && own == b.Key:
		c.end(b.Number, Confirmed, "")
		return
	case own != "":
		s.index.drop(own)
	}
	if b.Key == "" {
		c.change(b.Number, func(r *record) {
			r.state, r.shared = Voided, false
			r.write("", "", reason)
		})
		return
	}
	s.detach(b.Key)
	c.change(b.Number, func(r *record) {
		if r.key() != b.Key {
			r.taken = max(now, r.taken+1)
			r.write(b.Key, "", "")
		}
		r.state, r.shared = Confirmed, false
	})
	s.index.set(b.Key, refOf(c.index, b.Number))
}
