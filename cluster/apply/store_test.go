package apply

import (
	"log/slog"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/store"
)

// testStore is a store.Store as a Store.
type testStore struct{ *store.Store }

// Snapshots implements Store.
func (s testStore) Snapshots() raft.SnapshotStore { return s.Store.Snapshots() }

func openTestStore(t *testing.T) Store {
	t.Helper()
	s, err := store.Open(store.Config{
		Dir: t.TempDir(), NodeID: "a", Logger: slog.New(slog.DiscardHandler),
		Watchdog: store.Watchdog{Fatal: func(err error) { t.Error(err) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return testStore{s}
}
