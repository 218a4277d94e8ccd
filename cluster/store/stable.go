package store

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/failpoint"
)

// Names that the Raft library gives to its values. It writes a vote in two parts, the
// term first, without anything in between.
const (
	keyTerm          = "CurrentTerm"
	keyVoteTerm      = "LastVoteTerm"
	keyVoteCandidate = "LastVoteCand"
)

// errNoKey is Get's error for a key that was never set. Its text is part of the library's
// interface: it compares the error's text with "not found".
var errNoKey = errors.New("not found")

// pair is a value and its key.
type pair struct{ key, value []byte }

// stableBackend writes several pairs in one transaction.
type stableBackend interface {
	raft.StableStore
	SetAll(pairs []pair) error
}

// checkedStable is the stable store: term, vote, and the file's owner.
type checkedStable struct {
	backend stableBackend
	guard   *guard

	mu sync.Mutex
	// voteTerm is the term of a vote whose candidate is not known yet. Written alone, it
	// would give the term's vote to the previous vote's candidate.
	voteTerm *pair
	// keys are those that were ever set. A lost vote must not look like a vote that was
	// never given.
	keys map[string]bool
}

func newCheckedStable(backend stableBackend, guard *guard, keys map[string]bool) *checkedStable {
	if keys == nil {
		keys = map[string]bool{}
	}
	return &checkedStable{backend: backend, guard: guard, keys: keys}
}

// Set writes a value with its checksum; it is on disk when nil is returned. The exception
// is the term of a vote: it is written with the candidate, in one transaction.
func (s *checkedStable) Set(key, value []byte) error {
	if string(key) == keyVoteTerm {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.voteTerm = &pair{bytes.Clone(key), bytes.Clone(value)}
		return s.guard.err()
	}
	pairs := append(s.before(key), pair{key, value})
	before, after := failpoints(string(key))
	failpoint.Hit(before)
	err := s.guard.write("writing a stable value", func() error {
		stored := make([]pair, len(pairs))
		for i, p := range pairs {
			stored[i] = pair{p.key, valueWithChecksum(p.key, p.value)}
		}
		return s.backend.SetAll(stored)
	})
	if err != nil {
		return err
	}
	failpoint.Hit(after)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range pairs {
		s.keys[string(p.key)] = true
	}
	return nil
}

// before is what must be written with the value of a key.
func (s *checkedStable) before(key []byte) (pairs []pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(key) == keyVoteCandidate && s.voteTerm != nil {
		pairs, s.voteTerm = append(pairs, *s.voteTerm), nil
	}
	return pairs
}

// failpoints are the points around the write of a value.
func failpoints(key string) (before, after failpoint.Point) {
	switch key {
	case keyTerm:
		return failpoint.TermBefore, failpoint.TermAfter
	case keyVoteCandidate:
		return failpoint.VoteBefore, failpoint.VoteAfter
	}
	return "", ""
}

// Get reads and checks a value; errNoKey if it was never set.
func (s *checkedStable) Get(key []byte) ([]byte, error) {
	// Looked up before the read, so that a concurrent Set is no contradiction.
	known := s.knows(key)
	var stored []byte
	err := s.guard.read(func() (err error) {
		stored, err = s.backend.Get(key)
		return err
	})
	switch {
	case s.guard.err() != nil:
		return nil, s.guard.err()
	case errors.Is(err, ErrCorrupt):
		return nil, s.guard.fail(err)
	case missing(stored, err) && !known:
		return nil, errNoKey
	case missing(stored, err):
		return nil, s.guard.fail(fmt.Errorf("%w: stable value %q is missing", ErrCorrupt, key))
	case err != nil:
		return nil, s.guard.fail(fmt.Errorf("%w: stable value %q: %w", ErrRead, key, err))
	}
	value, err := stripValueChecksum(key, stored)
	if err != nil {
		return nil, s.guard.fail(err)
	}
	return value, nil
}

func (s *checkedStable) knows(key []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[string(key)]
}

// missing recognises both ways in which backends report a missing key: an error with the
// agreed text, or an empty value. A stored value is never empty.
func missing(stored []byte, err error) bool {
	if err != nil {
		return err.Error() == errNoKey.Error()
	}
	return len(stored) == 0
}
