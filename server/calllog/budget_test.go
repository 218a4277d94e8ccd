package calllog

import (
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	var b Budget
	now := time.Unix(1_700_000_000, 0)
	written := 0
	for range 10 * MaxLines {
		if _, ok := b.Allow(now); ok {
			written++
		}
	}
	if written != MaxLines {
		t.Errorf("%d lines within a second, want %d", written, MaxLines)
	}
	if silent, ok := b.Allow(now.Add(time.Second)); !ok || silent != 9*MaxLines {
		t.Errorf("a second later: %v, %d left out, want %d", ok, silent, 9*MaxLines)
	}
	if silent, ok := b.Allow(now.Add(time.Second)); !ok || silent != 0 {
		t.Errorf("after that: %v, %d left out, want none", ok, silent)
	}
}
