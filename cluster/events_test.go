package cluster

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
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

// TestQuorumMissing: the time counts from the start, or from the loss.
func TestQuorumMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newQuorumState()
		missing := func(want time.Duration) {
			t.Helper()
			if d := v.missing(time.Now()); d != want {
				t.Errorf("missing for %v, want %v", d, want)
			}
		}
		time.Sleep(3 * time.Second)
		missing(3 * time.Second)
		v.set(true)
		time.Sleep(time.Second)
		missing(0)
		v.set(false)
		time.Sleep(time.Second)
		v.set(false)
		time.Sleep(time.Second)
		missing(2 * time.Second)
	})
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
