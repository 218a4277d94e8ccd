package series

import (
	"cmp"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Reconcile says what the books have of unknown numbers of a scope, of all or none. One with
// a key is confirmed for it. One without a key is voided: no document has it. The reason is
// ReasonNotInBooks unless another one is given. A number that is what is said already stays.
//
// A number that its key has kept is confirmed for no other one, for no other key can have
// got it. The error is *Error.
func (s *Series) Reconcile(now int64, values []string, books []*raftlogv1.SeriesKey, reason string) ([]*raftlogv1.SeriesNumber, error) {
	reason = cmp.Or(reason, ReasonNotInBooks)
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	if err := checkReconciled(books); err != nil {
		return nil, err
	}
	c, err := s.scopes.find(values)
	if err != nil {
		return nil, err
	}
	s.advance(now)
	books = c.placed(books)
	for _, b := range books {
		if err := s.judgeReconciled(c, b); err != nil {
			return nil, err
		}
	}
	c = s.scopes.own(c.index)
	numbers := make([]*raftlogv1.SeriesNumber, len(books))
	for i, b := range books {
		if c.at(b.GetNumber()).state == Unknown {
			s.reconcile(c, b, reason)
		}
		numbers[i] = s.number(c, b.GetNumber())
	}
	return numbers, nil
}

// checkReconciled refuses what can be said of no scope.
func checkReconciled(books []*raftlogv1.SeriesKey) error {
	if len(books) < 1 || len(books) > MaxKeys {
		return invalid("numbers", "are not 1 to 1000")
	}
	seen := make(map[int64]bool, len(books))
	for _, b := range books {
		if seen[b.GetNumber()] {
			return invalid("numbers", "have one twice")
		}
		seen[b.GetNumber()] = true
	}
	if keys := KeysInBooks(books); len(keys) > 0 {
		return checkKeys(keys)
	}
	return nil
}

// KeysInBooks returns the keys of numbers that have documents.
func KeysInBooks(books []*raftlogv1.SeriesKey) (keys []string) {
	for _, b := range books {
		if b.GetKey() != "" {
			keys = append(keys, b.GetKey())
		}
	}
	return keys
}

// placed returns numbers of the books by their places.
func (c *scope) placed(books []*raftlogv1.SeriesKey) []*raftlogv1.SeriesKey {
	if c.allotted.none() {
		return books
	}
	placed := make([]*raftlogv1.SeriesKey, len(books))
	for i, b := range books {
		placed[i] = &raftlogv1.SeriesKey{Key: b.GetKey(), Number: c.placeOf(b.GetNumber())}
	}
	return placed
}

// judgeReconciled refuses what cannot be said of a number.
func (v *View) judgeReconciled(c *scope, b *raftlogv1.SeriesKey) error {
	if b.GetNumber() > c.last || c.at(b.GetNumber()).state == 0 {
		return invalid("numbers", "have one that the scope does not have")
	}
	r := c.at(b.GetNumber())
	if b.GetKey() != "" {
		if other := v.keptBy(b.GetKey()); other != 0 && other != refOf(c.index, b.GetNumber()) {
			return conflict(v.number(v.scopes.at(other.scope()), other.number()))
		}
	}
	switch state, reason := v.stateOf(r); {
	case state == Unknown && r.owner() != "" && b.GetKey() != "" && b.GetKey() != r.key():
		return conflict(v.number(c, b.GetNumber()))
	case state == Unknown, state == Confirmed && b.GetKey() == r.key(), state == Voided && b.GetKey() == "" && r.key() == "":
		return nil
	default:
		return wrongState(r.key(), c.numberOf(b.GetNumber()), state, reason)
	}
}

// keptBy returns the number of a key; 0 if it has none, or has released it.
func (v *View) keptBy(key string) ref {
	at := v.index.find(key)
	if at == 0 {
		return 0
	}
	_, r := v.record(at)
	if state, _ := v.stateOf(r); state == Released {
		return 0
	}
	return at
}

// reconcile ends an unknown number.
func (s *Series) reconcile(c *scope, b *raftlogv1.SeriesKey, reason string) {
	r := c.at(b.GetNumber())
	switch own := r.owner(); {
	case own != "" && own == b.GetKey():
		c.end(b.GetNumber(), Confirmed, "")
		return
	case own != "":
		s.index.drop(own)
	}
	if b.GetKey() == "" {
		c.change(b.GetNumber(), func(r *record) {
			r.state, r.shared = Voided, false
			r.write("", "", reason)
		})
		return
	}
	s.detach(b.GetKey())
	c.change(b.GetNumber(), func(r *record) {
		if r.key() != b.GetKey() {
			r.taken = max(s.now, r.taken+1)
			r.write(b.GetKey(), "", "")
		}
		r.state, r.shared = Confirmed, false
	})
	s.index.set(b.GetKey(), refOf(c.index, b.GetNumber()))
}
