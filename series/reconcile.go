package series

import (
	"cmp"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Reconcile says what the books have of unknown numbers of a scope, of all or none. One with
// a key is confirmed for it. One without a key is voided: no document has it. The reason is
// ReasonNotInBooks unless another one is given. A number that is what is said already stays
// as it is.
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
	numbers := make([]*raftlogv1.SeriesNumber, len(books))
	for i, b := range books {
		if c.at(b.GetNumber()).state == Unknown {
			s.reconcile(now, c, b, reason)
		}
		numbers[i] = s.number(c, b.GetNumber(), now)
	}
	return numbers, nil
}

// checkReconciled refuses what can be said of no scope.
func checkReconciled(books []*raftlogv1.SeriesKey) error {
	if len(books) < 1 || len(books) > MaxKeys {
		return invalid("numbers", "are not 1 to 1000")
	}
	seen := make(map[int64]bool, len(books))
	keys := make([]string, 0, len(books))
	for _, b := range books {
		if seen[b.GetNumber()] {
			return invalid("numbers", "have one twice")
		}
		seen[b.GetNumber()] = true
		if b.GetKey() != "" {
			keys = append(keys, b.GetKey())
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return checkKeys(keys)
}

// judgeReconciled refuses what cannot be said of a number.
func (s *Series) judgeReconciled(now int64, c *scope, b *raftlogv1.SeriesKey) error {
	if b.GetNumber() <= c.offset || b.GetNumber() > c.last {
		return invalid("numbers", "have one that is none of the scope")
	}
	r := c.at(b.GetNumber())
	if b.GetKey() != "" {
		if other, ok := s.keptBy(b.GetKey(), now); ok && other != refOf(c.index, b.GetNumber()) {
			return conflict(s.number(s.scopes.at(other.scope()), other.number(), now))
		}
	}
	switch state, reason := s.stateOf(r, now); {
	case state == Unknown && r.owner() != "" && b.GetKey() != "" && b.GetKey() != r.key():
		return conflict(s.number(c, b.GetNumber(), now))
	case state == Unknown, state == Confirmed && b.GetKey() == r.key(), state == Voided && b.GetKey() == "" && r.key() == "":
		return nil
	default:
		return wrongState(r.key(), b.GetNumber(), state, reason)
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
func (s *Series) reconcile(now int64, c *scope, b *raftlogv1.SeriesKey, reason string) {
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
			r.taken = max(now, r.taken+1)
			r.write(b.GetKey(), "", "")
		}
		r.state, r.shared = Confirmed, false
	})
	s.index.set(b.GetKey(), refOf(c.index, b.GetNumber()))
}
