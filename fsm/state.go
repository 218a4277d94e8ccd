package fsm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// ErrCorrupt is wrapped in the errors of Apply and Restore for damaged bytes.
var ErrCorrupt = errors.New("fsm: corrupt")

// ErrWrongCluster is wrapped in the errors of Apply and Restore for an entry or a snapshot of
// another cluster.
var ErrWrongCluster = errors.New("fsm: of another cluster")

// ErrOrder is Apply's error, wrapped, for an entry whose index is not above the applied index.
var ErrOrder = errors.New("fsm: log index out of order")

// Config configures a State.
type Config struct {
	// Logger gets messages for operators; nil discards them.
	Logger *slog.Logger
	// MaxFormat is the newest log format that is applied; 0 means
	// raftlog.FormatVersion. Tests of upgrades set another.
	MaxFormat uint32
	// AnsweredAgain, if set, is called for each call that gets the remembered answer of
	// its request id. It is called by Apply, on every node that applies the entry, and
	// must be quick.
	AnsweredAgain func(database string)
	// EtagFloors, if set, is called when a node's etags must go on above floors,
	// because it shares its tag with a node of another cluster: by Apply, on every
	// node that applies the entry, and by Restore. It must be quick.
	EtagFloors func(*raftlogv1.EtagRecord)
	// HiLoTaken, if set, is called when the numbers of a HiLo tag up to upTo are taken other than
	// by a range: by a merge, a set counter, a floor, a caller's last_max. An empty tag means every
	// tag of every database; after a Restore, in which anything may have been taken, upTo is then
	// the greatest number. It is called by Apply, on every node that applies the entry, and by
	// Restore, and must be quick.
	HiLoTaken func(database, tag string, upTo int64)
}

// State is the replicated state. One goroutine calls Apply, Skip and Restore; all other methods
// are safe for concurrent use.
type State struct {
	cfg Config

	// mu guards contents: Apply writes, reads read.
	mu       sync.RWMutex
	contents *contents

	applied applied

	// roles are those of contents.
	roles atomic.Pointer[roleStore]
}

// New returns an empty State, of a cluster that is not formed yet.
func New(cfg Config) *State {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxFormat == 0 {
		cfg.MaxFormat = raftlog.FormatVersion
	}
	s := &State{cfg: cfg}
	s.use(newContents())
	return s
}

// use makes c the contents. The caller holds the lock if s is shared.
func (s *State) use(c *contents) {
	c.requests.answeredAgain = s.cfg.AnsweredAgain
	c.etags.floors = s.cfg.EtagFloors
	c.hilos.taken = s.cfg.HiLoTaken
	c.etags.tellAll()
	s.contents = c
	s.publishRoles()
}

// Apply applies the entry at index and returns one result per group, in order. The
// results are shared with the state and must not be changed. The entry is not kept.
//
// An error means that the node must stop, and that the entry does not count as applied:
// *raftlog.UnknownFormatError, also where the entry raised the format beyond MaxFormat, as rules
// that this program does not know count from there on; or an error that wraps ErrCorrupt,
// ErrWrongCluster or ErrOrder. A refused operation is not an error: its result has the refusal.
func (s *State) Apply(index uint64, entry []byte) ([]raftlog.GroupResult, error) {
	e, err := raftlog.DecodeEntry(entry, s.cfg.MaxFormat)
	if errors.Is(err, raftlog.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	var results []raftlog.GroupResult
	if err == nil {
		results, err = s.apply(index, &e)
	}
	if err != nil {
		return nil, fmt.Errorf("log entry %d: %w", index, err)
	}
	s.applied.set(index)
	return results, nil
}

// apply is Apply of a decoded entry, under the lock.
func (s *State) apply(index uint64, e *raftlog.Entry) ([]raftlog.GroupResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	results, err := s.contents.apply(index, e)
	if err == nil && s.contents.format > s.cfg.MaxFormat {
		return nil, &raftlog.UnknownFormatError{What: "log from here on", Format: s.contents.format, Known: s.cfg.MaxFormat}
	}
	s.publishRoles()
	return results, err
}

// Skip moves the applied index over an entry that is not the state's, such as a change of
// Raft's configuration. An index that is not above it changes nothing.
func (s *State) Skip(index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contents.applied = max(s.contents.applied, index)
	s.applied.set(s.contents.applied)
}

// AppliedIndex returns the newest log index that was applied or skipped.
func (s *State) AppliedIndex() uint64 { return s.applied.load() }

// WaitApplied returns nil once index has been applied or skipped, and ctx's
// error if that ends first.
func (s *State) WaitApplied(ctx context.Context, index uint64) error {
	return s.applied.wait(ctx, index)
}

// Hash returns the applied index and the hash of the state there. States of two
// nodes with equal indexes must have equal hashes; anything else is a bug or
// damaged memory.
func (s *State) Hash() (index, hash uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contents.applied, s.contents.hash()
}
