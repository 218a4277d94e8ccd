package store

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"
)

const nodeA = "00112233445566778899aabbccddeeff"

func TestMain(m *testing.M) {
	if inHelperProcess() {
		return
	}
	goleak.VerifyTestMain(m)
}

// fatals collects what the store called Fatal with.
type fatals struct {
	mu   sync.Mutex
	errs []error
	ch   chan error
}

func newFatals() *fatals { return &fatals{ch: make(chan error, 16)} }

func (f *fatals) fatal(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
	f.ch <- err
}

func (f *fatals) all() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]error(nil), f.errs...)
}

func testConfig(dir string, f *fatals) Config {
	return Config{
		Dir: dir, NodeID: nodeA, cacheEntries: 4, Logger: slog.New(slog.DiscardHandler),
		noSync: true,
		// Small, so that segments begin and end, and a new log is made quickly.
		segmentBytes: 4 << 10,
		// Far above any fsync of a busy test machine.
		Watchdog: Watchdog{Limit: time.Minute, Fatal: f.fatal},
	}
}

func mustOpen(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// entry is a log entry whose every field follows from its index.
func entry(index uint64) *raft.Log {
	log := &raft.Log{
		Index: index, Term: 1 + index/10, Type: raft.LogType(index % 2),
		Data:       []byte(fmt.Sprintf("data of %d", index)),
		AppendedAt: time.Unix(1_700_000_000, int64(index)).UTC(),
	}
	if index%3 == 0 {
		log.Extensions = []byte("ext")
	}
	return log
}

func entries(first, last uint64) []*raft.Log {
	var logs []*raft.Log
	for i := first; i <= last; i++ {
		logs = append(logs, entry(i))
	}
	return logs
}

// edit changes a closed store's file through bbolt.
func edit(t testing.TB, dir string, change func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, fileName), fileMode, &bbolt.Options{Timeout: time.Second})
	must(t, err)
	must(t, db.Update(change))
	must(t, db.Close())
}
