package raftguard

import (
	"log/slog"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster/store"
)

func openTestStore(t *testing.T) Store {
	t.Helper()
	s, err := store.Open(store.Config{
		Dir: t.TempDir(), NodeID: "a", Logger: slog.New(slog.DiscardHandler),
		Watchdog: store.Watchdog{Limit: time.Minute, Fatal: func(err error) { t.Error(err) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
