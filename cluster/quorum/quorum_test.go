package quorum

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestEvidence walks through what a node sees when its quorum comes and goes.
func TestEvidence(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	c := evidence{grace: 400 * time.Millisecond}
	if c.look(at(0), time.Time{}) {
		t.Error("a quorum without any evidence")
	}
	for ms := 25; ms <= 1000; ms += 25 {
		if !c.look(at(ms), at(ms-20)) {
			t.Fatalf("no quorum at %d ms with fresh evidence", ms)
		}
	}
	for ms := 1025; ms <= 1375; ms += 25 {
		if !c.look(at(ms), at(980)) {
			t.Fatalf("no quorum at %d ms, %d ms after the last evidence", ms, ms-980)
		}
	}
	if c.look(at(1400), at(980)) {
		t.Error("a quorum 420 ms after the last evidence")
	}
	if !c.look(at(1425), at(1420)) {
		t.Error("no quorum with fresh evidence again")
	}
}

// TestEvidenceOfStarvedProcess does not run for five seconds: that alone is no
// sign of a lost quorum.
func TestEvidenceOfStarvedProcess(t *testing.T) {
	start := time.Unix(1000, 0)
	c := evidence{grace: 400 * time.Millisecond}
	c.look(start, start)
	if !c.look(start.Add(5*time.Second), start) {
		t.Error("the quorum was lost while nobody looked")
	}
	lost := false
	for i := range 20 {
		lost = !c.look(start.Add(5*time.Second+time.Duration(i)*Tick), start)
	}
	if !lost {
		t.Error("the quorum is not lost although half a second of looking showed none")
	}
}

func TestMajority(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(ms int) time.Time { return now.Add(-time.Duration(ms) * time.Millisecond) }
	a := NewMonitor(Config{})
	a.Heard("b", ago(100), true)
	a.Heard("c", ago(300), true)
	a.Heard("c", ago(50), false) // No answer is no evidence.
	a.Heard("b", ago(200), true) // An older one changes nothing.
	tests := []struct {
		name   string
		self   string
		voters []string
		want   time.Time
	}{
		{"alone", "a", []string{"a"}, now},
		{"two", "a", []string{"a", "b"}, ago(100)},
		{"three", "a", []string{"a", "b", "c"}, ago(100)},
		{"three, one never heard of", "a", []string{"a", "b", "x"}, ago(100)},
		{"three, two never heard of", "a", []string{"a", "x", "y"}, time.Time{}},
		{"four need three", "a", []string{"a", "b", "c", "x"}, ago(300)},
		{"a watcher does not count", "w", []string{"a", "b", "c"}, ago(300)},
		{"nobody votes", "a", nil, time.Time{}},
	}
	for _, tt := range tests {
		if got := a.majority(now, tt.self, tt.voters); !got.Equal(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestQuorumMissing: the time counts from the start, or from the loss.
func TestQuorumMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := NewReach()
		missing := func(want time.Duration) {
			t.Helper()
			if d := v.Missing(); d != want {
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
