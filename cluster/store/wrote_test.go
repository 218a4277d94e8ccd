package store

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestWritesAreTold: each durable write once, with the time it took; one that
// failed is not.
func TestWritesAreTold(t *testing.T) {
	f := newFatals()
	guard := newGuard(Watchdog{Limit: time.Minute, Fatal: f.fatal}, testConfig(t.TempDir(), f).Logger)
	var told []time.Duration
	guard.wrote = func(took time.Duration) { told = append(told, took) }
	backend := &faulty{InmemStore: raft.NewInmemStore()}
	log := newCheckedLog(backend, guard)
	must(t, log.StoreLogs(entries(1, 3)))
	must(t, log.StoreLogs(entries(4, 4)))
	backend.err = errors.New("disk")
	if log.StoreLogs(entries(5, 5)) == nil {
		t.Fatal("a failed write went well")
	}
	if len(told) != 2 || told[0] <= 0 || told[1] <= 0 {
		t.Errorf("told of %v", told)
	}
}
