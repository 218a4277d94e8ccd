package store

import (
	"errors"
	"testing"
	"time"
)

// TestWritesAreTold: each durable write once, with the time it took; one that
// failed is not.
func TestWritesAreTold(t *testing.T) {
	s, fault := openFaulty(t, testConfig(t.TempDir(), newFatals()))
	var told []time.Duration
	s.guard.wrote = func(took time.Duration) { told = append(told, took) }
	must(t, s.StoreLogs(entries(1, 3)))
	must(t, vote(s, 1, "b"))
	fault.err = errors.New("disk")
	if s.StoreLogs(entries(4, 4)) == nil {
		t.Fatal("a failed write went well")
	}
	if len(told) != 2 || told[0] <= 0 || told[1] <= 0 {
		t.Errorf("told of %v", told)
	}
}
