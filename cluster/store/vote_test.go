package store

import (
	"errors"
	"testing"

	"github.com/idnode/idnode/internal/boltfile"
)

// vote writes a vote as the Raft library does.
func vote(s *Store, term uint64, candidate string) error {
	return errors.Join(s.SetUint64([]byte(keyVoteTerm), term), s.Set([]byte(keyVoteCandidate), []byte(candidate)))
}

// TestAVoteIsOneWrite: after a crash between its two parts, the term's vote would
// belong to the candidate of the vote before.
func TestAVoteIsOneWrite(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	stands := func(wantTerm uint64, want string) {
		t.Helper()
		term, err := s.GetUint64([]byte(keyVoteTerm))
		must(t, err)
		candidate, err := s.Get([]byte(keyVoteCandidate))
		must(t, err)
		if term != wantTerm || string(candidate) != want {
			t.Errorf("the vote of term %d is %q, want %q in %d", term, candidate, want, wantTerm)
		}
	}
	before := transactions(t, s)
	must(t, vote(s, 5, "b"))
	if n := transactions(t, s) - before; n != 1 {
		t.Errorf("a vote took %d transactions", n)
	}
	stands(5, "b")
	// A crash comes between the two parts, and another value is written before it.
	must(t, s.SetUint64([]byte(keyVoteTerm), 6))
	must(t, s.SetUint64([]byte(keyTerm), 6))
	mustClose(t, s)
	s = mustOpen(t, cfg)
	stands(5, "b")
}

// TestATermIsWrittenOnce: the library sets it again when it starts, and when another
// candidate has won.
func TestATermIsWrittenOnce(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	must(t, s.SetUint64([]byte(keyTerm), 5))
	mustClose(t, s)
	s = mustOpen(t, cfg)
	before := transactions(t, s)
	for _, term := range []uint64{5, 6, 6, 7} {
		must(t, s.SetUint64([]byte(keyTerm), term))
	}
	if n := transactions(t, s) - before; n != 2 {
		t.Errorf("two new terms took %d transactions", n)
	}
}

// transactions counts those in raft.db.
func transactions(t *testing.T, s *Store) uint64 {
	t.Helper()
	n, err := boltfile.NewestTx(s.stable.backend.(*markedBolt).file)
	must(t, err)
	return n
}

// TestAVoteThatCannotBeWrittenIsNone: nothing is given or taken any more.
func TestAVoteThatCannotBeWrittenIsNone(t *testing.T) {
	s, fault := openFaulty(t, testConfig(t.TempDir(), newFatals()))
	fault.err = errors.New("input/output error")
	must(t, s.SetUint64([]byte(keyVoteTerm), 5))
	if s.Set([]byte(keyVoteCandidate), []byte("b")) == nil {
		t.Error("the candidate was written")
	}
	if _, err := s.GetUint64([]byte(keyVoteTerm)); err == nil {
		t.Error("the store still answers")
	}
}

// TestAVoteNeedsItsTerm: a candidate alone would be given the vote of another term.
func TestAVoteNeedsItsTerm(t *testing.T) {
	s := mustOpen(t, testConfig(t.TempDir(), newFatals()))
	must(t, vote(s, 5, "b"))
	if s.Set([]byte(keyVoteCandidate), []byte("c")) == nil {
		t.Error("it was written without one")
	}
}
