package disk

import (
	"errors"
	"log/slog"
	"testing"
)

func TestSpace(t *testing.T) {
	free, err := uint64(100), error(nil)
	s := NewSpace(func() (uint64, error) { return free, err }, 50, slog.New(slog.DiscardHandler))
	if s.Full() {
		t.Error("full with space above the mark")
	}
	free = 49
	s.Check()
	if !s.Full() {
		t.Error("not full below the mark")
	}
	free, err = 0, errors.New("not known")
	s.isBelow.Store(false)
	s.Check()
	if s.Full() {
		t.Error("full although nobody knows")
	}
	s.SetQuorumFull(true)
	if !s.Full() {
		t.Error("not full although a quorum of others is")
	}
}
