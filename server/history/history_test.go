package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at is the observation of a node that gives ten identities a second.
func at(second int) Observation {
	return Observation{
		Issued: map[string]uint64{"identity": uint64(10 * second)}, CommitP99: 700, Leader: "A", Members: []string{"A", "B"},
	}
}

// observe is what a node sees from one second to another.
func (h *History) observe(from, to int, see func(int) Observation) {
	for s := from; s <= to; s++ {
		h.Observe(time.Duration(s)*time.Second, see(s))
	}
}

const hour = 3_600_000

// TestSamples: each ten seconds a sample; the newest two hours are kept.
func TestSamples(t *testing.T) {
	var h History
	h.observe(0, 35, at)
	got := h.Samples()
	if len(got) != 3 || got[2].Millis != 30_000 || got[2].Rates[0] != 10 || got[2].Rates[1] != 0 || got[2].CommitP99 != 700 {
		t.Errorf("got %+v", got)
	}
	h.observe(36, 4*3600, at)
	if got = h.Samples(); len(got) != MaxSamples || got[len(got)-1].Millis != 4*hour || got[0].Millis != 2*hour+Every.Milliseconds() {
		t.Errorf("%d samples from %d to %d", len(got), got[0].Millis, got[len(got)-1].Millis)
	}
}

// TestAPauseLeavesAGap: while the process stood still nothing is known, and nothing is spread
// over that time.
func TestAPauseLeavesAGap(t *testing.T) {
	var h History
	h.observe(0, 20, at)
	h.observe(100, 110, at)
	var ends []int64
	for _, s := range h.Samples() {
		ends = append(ends, s.Millis/1000)
		if s.Rates[0] != 10 {
			t.Errorf("%+v", s)
		}
	}
	if d := cmp.Diff([]int64{10, 20, 110}, ends); d != "" {
		t.Error(d)
	}
	wantEvents(t, &h, "0 started ", "0 leader A", "100 paused 1m20s")
}

// TestTimeThatDoesNotRise is passed over.
func TestTimeThatDoesNotRise(t *testing.T) {
	var h History
	h.observe(0, 20, at)
	h.observe(5, 20, at)
	if got := h.Samples(); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestEvents: a change is noted once, when it is seen.
func TestEvents(t *testing.T) {
	var h History
	step := func(second int, leader string, members []string, alarms map[string]Alarm) {
		h.Observe(time.Duration(second)*time.Second, Observation{Leader: leader, Members: members, Alarms: alarms})
	}
	quorum, lags := map[string]Alarm{"q": {"No quorum.", true}}, map[string]Alarm{"l": {Text: "C lags."}}
	two, three := []string{"A", "B"}, []string{"A", "B", "C"}
	step(1, "", nil, quorum)
	step(2, "A", two, nil)
	step(3, "A", three, lags)
	step(4, "B", three, lags)
	step(5, "B", []string{"B", "C"}, nil)
	wantEvents(t, &h, "1 started ", "1 alarm No quorum.!", "2 leader A", "2 over No quorum.", "3 joined C", "3 alarm C lags.",
		"4 leader B", "5 removed A", "5 over C lags.")
}

func wantEvents(t *testing.T, h *History, want ...string) {
	t.Helper()
	var got []string
	for _, e := range h.Events() {
		text := fmt.Sprintf("%d %s %s", e.Millis/1000, e.Kind, e.Text)
		if e.Critical {
			text += "!"
		}
		got = append(got, text)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestFlapping: an alarm that comes and goes does not push out all else, and what is noted of it
// last is how it is.
func TestFlapping(t *testing.T) {
	var h History
	h.observe(0, 299, func(s int) Observation {
		o := Observation{Leader: "A"}
		if s < 290 && s%2 == 1 {
			o.Alarms = map[string]Alarm{"l": {Text: "C lags."}}
		}
		return o
	})
	events := h.Events()
	if len(events) > 2+5*maxChanges {
		t.Errorf("%d events", len(events))
	}
	h.observe(300, 400, func(int) Observation { return Observation{Leader: "A"} })
	events = h.Events()
	if last := events[len(events)-1]; last.Kind != "over" || len(h.alarms) != 0 {
		t.Errorf("%+v is the last; %v", last, h.alarms)
	}
}

// TestBounded: alarms that come and go, of any length, take no more than their place.
func TestBounded(t *testing.T) {
	var h History
	h.observe(0, 10_000, func(s int) Observation {
		return Observation{Alarms: map[string]Alarm{fmt.Sprint(s): {Text: strings.Repeat("x", 1000)}}}
	})
	events := h.Events()
	if len(events) != MaxEvents || cap(h.events) > 2*MaxEvents || cap(h.samples) > 2*MaxSamples || len(h.alarms) > 100 {
		t.Errorf("%d events, room for %d, and for %d samples", len(events), cap(h.events), cap(h.samples))
	}
	for _, e := range events {
		if len(e.Text) > maxText {
			t.Fatalf("%d bytes", len(e.Text))
		}
	}
}
