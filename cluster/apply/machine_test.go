package apply

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/raftlog"
)

// fakeState fails when it is told to.
type fakeState struct {
	applied uint64
	err     error
}

func (s *fakeState) Apply(index uint64, _ []byte) ([]raftlog.GroupResult, error) {
	if s.err != nil {
		return nil, s.err
	}
	s.applied = index
	return []raftlog.GroupResult{{Status: raftlog.Applied}}, nil
}

func (s *fakeState) Skip(index uint64)          { s.applied = index }
func (s *fakeState) Restore(io.Reader) error    { return s.err }
func (s *fakeState) Hash() (index, hash uint64) { return s.applied, 0 }

// TestMachineStopsForGood applies nothing after an entry that cannot be applied,
// gives no results, and ends the node once.
func TestMachineStopsForGood(t *testing.T) {
	bad := errors.New("unknown format")
	state := &fakeState{}
	fatal := 0
	m := NewMachine(t.Context(), Config{
		State: state, Freeze: func() Snapshot { t.Error("a snapshot of a broken state"); return nil }, SnapshotBytes: 1,
		Fatal: func(error) { fatal++ }, Logger: slog.New(slog.DiscardHandler),
	})
	m.StoreConfiguration(1, raft.Configuration{})
	if r, ok := m.Apply(&raft.Log{Index: 2}).([]raftlog.GroupResult); !ok || len(r) != 1 || state.applied != 2 {
		t.Errorf("results %v, applied %d", r, state.applied)
	}
	state.err = bad
	if err, ok := m.Apply(&raft.Log{Index: 3}).(error); !ok || !errors.Is(err, bad) {
		t.Errorf("response %v, want the error", err)
	}
	state.err = nil
	if err, ok := m.Apply(&raft.Log{Index: 4}).(error); !ok || !errors.Is(err, bad) {
		t.Errorf("response %v after the error, want the error again", err)
	}
	m.StoreConfiguration(5, raft.Configuration{})
	if _, err := m.Snapshot(); !errors.Is(err, bad) {
		t.Errorf("Snapshot: %v, want the error", err)
	}
	if err := m.Restore(io.NopCloser(bytes.NewReader(nil))); !errors.Is(err, bad) {
		t.Errorf("Restore: %v, want the error", err)
	}
	if state.applied != 2 || fatal != 1 {
		t.Errorf("applied %d, ended %d times; want 2 and once", state.applied, fatal)
	}
}

// threeBytes is a snapshot.
type threeBytes struct{ err error }

func (s threeBytes) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write([]byte("abc"))
	return int64(n), errors.Join(err, s.err)
}

func (threeBytes) Close() {}

// TestSnapshotIsTold: one that is whole, and no other.
func TestSnapshotIsTold(t *testing.T) {
	var told []int64
	written := func(bytes int64, _ time.Duration) { told = append(told, bytes) }
	for _, err := range []error{errors.New("disk"), nil} {
		store := raft.NewInmemSnapshotStore()
		sink, createErr := store.Create(raft.SnapshotVersionMax, 1, 1, raft.Configuration{}, 0, nil)
		if createErr != nil {
			t.Fatal(createErr)
		}
		f := frozen{NewMachine(t.Context(), Config{SnapshotWritten: written}), threeBytes{err}}
		if got := f.Persist(sink); (got != nil) != (err != nil) {
			t.Errorf("%v led to %v", err, got)
		}
	}
	if len(told) != 1 || told[0] != 3 {
		t.Errorf("told of %d", told)
	}
}
