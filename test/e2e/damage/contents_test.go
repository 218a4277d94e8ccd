package damage

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/store"
	"github.com/idnode/idnode/etag/boltetag"
)

// contentsOf is a hash over everything that a node can read in its data
// directory: who it is, votes, log entries, the newest snapshot, etag counters.
func (p *past) contentsOf(dir string) (string, error) {
	h := sha256.New()
	record, err := member.LoadOrCreate(dir, "raft.db")
	if err != nil {
		return "", err
	}
	put(h, record)
	if err := p.putStore(h, dir, record.ID.String()); err != nil {
		return "", err
	}
	etags, err := boltetag.Open(filepath.Join(dir, "etags.db"), boltetag.Options{NodeID: record.ID.Bytes(), MustExist: true})
	if err != nil {
		return "", err
	}
	defer etags.Close()
	state, err := etags.Load()
	put(h, state)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

func put(h hash.Hash, v any) {
	if err := json.NewEncoder(h).Encode(v); err != nil {
		panic(err)
	}
}

func (p *past) putStore(h hash.Hash, dir, id string) error {
	s, err := store.Open(store.Config{
		Dir: dir, NodeID: id, MustExist: true,
		Watchdog: store.Watchdog{Limit: time.Minute, Fatal: func(error) {}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer s.Close()
	err = errors.Join(putVotes(h, s), putLog(h, s), putSnapshot(h, s.Snapshots()))
	_, failed := s.LastIndex() // It fails once the store has.
	return errors.Join(err, failed)
}

func putVotes(h hash.Hash, s *store.Store) error {
	term, err := s.GetUint64([]byte("CurrentTerm"))
	voteTerm, err2 := s.GetUint64([]byte("LastVoteTerm"))
	candidate, err3 := s.Get([]byte("LastVoteCand"))
	put(h, []any{term, voteTerm, candidate})
	if err := errors.Join(err, err2, err3); err != nil && err.Error() != "not found" {
		return err
	}
	return nil
}

func putLog(h hash.Hash, s *store.Store) error {
	first, err := s.FirstIndex()
	last, err2 := s.LastIndex()
	put(h, []uint64{first, last})
	for i := first; i <= last && i > 0; i++ {
		var entry raft.Log
		if err := s.GetLog(i, &entry); err != nil {
			return err
		}
		put(h, entry)
	}
	return errors.Join(err, err2)
}

func putSnapshot(h hash.Hash, s raft.SnapshotStore) error {
	metas, err := s.List()
	if err != nil || len(metas) == 0 {
		return err
	}
	meta, state, err := s.Open(metas[0].ID)
	if err != nil {
		return err
	}
	defer state.Close()
	meta.Peers = nil // They are unused since the library has configurations.
	put(h, meta)
	_, err = io.Copy(h, state)
	return err
}
