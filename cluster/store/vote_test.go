package store

import (
	"errors"
	"reflect"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"github.com/idnode/idnode/internal/boltfile"
)

// TestRaftBoltKeepsItsDatabaseInConn: newBolt takes it from there.
func TestRaftBoltKeepsItsDatabaseInConn(t *testing.T) {
	conn, found := reflect.TypeFor[raftboltdb.BoltStore]().FieldByName("conn")
	if !found || conn.Type != reflect.TypeFor[*bbolt.DB]() {
		t.Fatal("this version of raft-boltdb does not keep its *bbolt.DB in BoltStore.conn: " +
			"newBolt needs another way to write term and candidate of a vote in one transaction")
	}
}

// TestAVoteIsOneWrite: after a crash between its two parts, the term's vote would
// belong to the candidate of the vote before.
func TestAVoteIsOneWrite(t *testing.T) { forKinds(t, checkAVoteIsOneWrite) }

func checkAVoteIsOneWrite(t *testing.T, kind LogKind) {
	cfg := testConfigOf(kind, t.TempDir(), newFatals())
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
	before, err := boltfile.NewestTx(s.backend.(*markedBolt).file)
	must(t, err)
	must(t, s.SetUint64([]byte(keyVoteTerm), 5))
	must(t, s.Set([]byte(keyVoteCandidate), []byte("b")))
	after, err := boltfile.NewestTx(s.backend.(*markedBolt).file)
	must(t, err)
	if after != before+1 {
		t.Errorf("a vote took %d transactions", after-before)
	}
	stands(5, "b")
	// A crash comes between the two parts, and another value is written before it.
	must(t, s.SetUint64([]byte(keyVoteTerm), 6))
	must(t, s.SetUint64([]byte(keyTerm), 6))
	mustClose(t, s)
	s = mustOpen(t, cfg)
	stands(5, "b")
}

// TestAVoteThatCannotBeWrittenIsNone: nothing is given or taken any more.
func TestAVoteThatCannotBeWrittenIsNone(t *testing.T) {
	b := &faulty{InmemStore: raft.NewInmemStore()}
	s := openOnBackend(t, testConfig(t.TempDir(), newFatals()), b)
	b.err = errors.New("input/output error")
	must(t, s.SetUint64([]byte(keyVoteTerm), 5))
	if s.Set([]byte(keyVoteCandidate), []byte("b")) == nil {
		t.Error("the candidate was written")
	}
	if _, err := s.GetUint64([]byte(keyVoteTerm)); err == nil {
		t.Error("the store still answers")
	}
}
