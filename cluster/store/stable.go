package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/idnode/idnode/internal/crc32c"
	"github.com/idnode/idnode/internal/failpoint"
)

// Names that the Raft library gives to its values. It writes a vote in two parts, the
// term first, without anything in between.
const (
	keyTerm          = "CurrentTerm"
	keyVoteTerm      = "LastVoteTerm"
	keyVoteCandidate = "LastVoteCand"
)

// keyVote is the record of a vote on disk: its term, which has termBytes, and its
// candidate.
const (
	keyVote   = "LastVote"
	termBytes = 8
)

// errNoKey is Get's error for a key that was never set. Its text is part of the library's
// interface: it compares the error's text with "not found".
var errNoKey = errors.New("not found")

type stableBackend interface {
	Set(key, value []byte) error
	io.Closer
}

// stableStore has term, vote, and what belongs to the directory. All is in memory, and
// was checked when it was read from the file.
type stableStore struct {
	backend stableBackend
	guard   *guard

	mu sync.Mutex
	// voteTerm is the term of a vote whose candidate is not known yet. Written alone, it
	// would give the term's vote to the previous vote's candidate.
	voteTerm []byte
	// values are on disk, with a vote in its two parts.
	values map[string][]byte
}

func newStableStore(backend stableBackend, guard *guard, inFile map[string][]byte) *stableStore {
	s := &stableStore{backend: backend, guard: guard, values: map[string][]byte{}}
	for key, value := range inFile {
		s.keep(key, value)
	}
	return s
}

func (s *stableStore) keep(key string, value []byte) {
	if key == keyVote {
		s.values[keyVoteTerm], s.values[keyVoteCandidate] = value[:termBytes:termBytes], value[termBytes:]
		return
	}
	s.values[key] = value
}

// Set writes a value with its checksum; it is on disk when nil is returned. The exception
// is the term of a vote: it is written with the candidate, as one record.
func (s *stableStore) Set(key, value []byte) error {
	name, value := string(key), bytes.Clone(value)
	switch name {
	case keyVoteTerm:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.voteTerm = value
		return s.guard.err()
	case keyVoteCandidate:
		term := s.takeVoteTerm()
		if len(term) != termBytes {
			return fmt.Errorf("store: a vote for %q without its term", value)
		}
		name, value = keyVote, append(term, value...)
	}
	if old, err := s.Get([]byte(name)); err == nil && bytes.Equal(old, value) {
		return nil // Raft sets the term again at each start, and when another candidate has won.
	}
	before, after := failpoints(name)
	failpoint.Hit(before)
	err := s.guard.write("writing a stable value", func() error {
		return s.backend.Set([]byte(name), valueWithChecksum([]byte(name), value))
	})
	if err != nil {
		return err
	}
	failpoint.Hit(after)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(name, value)
	return nil
}

func (s *stableStore) takeVoteTerm() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	term := s.voteTerm
	s.voteTerm = nil
	return term
}

func failpoints(name string) (before, after failpoint.Point) {
	switch name {
	case keyTerm:
		return failpoint.TermBefore, failpoint.TermAfter
	case keyVote:
		return failpoint.VoteBefore, failpoint.VoteAfter
	}
	return "", ""
}

// Get returns a value, which the caller must not change; errNoKey if it was never set.
func (s *stableStore) Get(key []byte) ([]byte, error) {
	if err := s.guard.err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[string(key)]
	if !ok {
		return nil, errNoKey
	}
	return value, nil
}

// checksumBytes is the length of a checksum, a CRC-32C, big endian.
const checksumBytes = 4

func valueWithChecksum(key, value []byte) []byte {
	stored := append(make([]byte, 0, len(value)+checksumBytes), value...)
	return binary.BigEndian.AppendUint32(stored, valueSum(key, value))
}

func stripValueChecksum(key, stored []byte) ([]byte, error) {
	n := len(stored) - checksumBytes
	if n < 0 || valueSum(key, stored[:n]) != binary.BigEndian.Uint32(stored[n:]) {
		return nil, fmt.Errorf("%w: checksum of stable value %q", ErrCorrupt, key)
	}
	return stored[:n:n], nil
}

func valueSum(key, value []byte) uint32 {
	return crc32c.Sum(binary.BigEndian.AppendUint64(nil, uint64(len(key))), key, value)
}
