package cluster

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestSuccession: a fail-over is another leader than the last one known, however
// long nobody led in between.
func TestSuccession(t *testing.T) {
	changes := 0
	s := succession{changed: func() { changes++ }}
	for _, step := range []struct {
		leader string
		want   int
	}{{"", 0}, {"a", 0}, {"a", 0}, {"", 0}, {"a", 0}, {"", 0}, {"b", 1}, {"b", 1}, {"a", 2}} {
		s.saw(step.leader)
		if changes != step.want {
			t.Errorf("after %q: %d changes, want %d", step.leader, changes, step.want)
		}
	}
	(&succession{last: "a"}).saw("b") // Nobody to tell.
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
		f := frozen{ctx: t.Context(), snapshot: threeBytes{err}, written: written}
		if got := f.Persist(sink); (got != nil) != (err != nil) {
			t.Errorf("%v led to %v", err, got)
		}
	}
	if len(told) != 1 || told[0] != 3 {
		t.Errorf("told of %d", told)
	}
}
