// Package history is a node's memory of what it did in the last two hours, so that an
// incident can be looked at after it: rates, commit times, events, and the names in use.
//
// It is in memory only and bounded, whatever names and events there are: some hundred kB. It
// reads no clock. Times are durations since the process began, by the monotonic clock, so that
// a clock that is set changes nothing. Samples and events have them in milliseconds.
package history

import (
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// Every is the time of a sample.
	Every = 10 * time.Second
	// MaxSamples and MaxEvents are how many are kept: the newest.
	MaxSamples = int(2 * time.Hour / Every)
	MaxEvents  = 250
	// maxText bounds the text of an event, in bytes.
	maxText = 300
	// maxChanges is how often an alarm is noted to begin or end in the time flapping.
	maxChanges = 6
	flapping   = time.Minute
)

// Strategies are what Sample.Rates has, in this order: the labels of idnode_ids_issued_total.
var Strategies = [...]string{"identity", "hilo", "server_side", "guid", "semantic", "series"}

// Sample is what the node did in the Every before Millis.
type Sample struct {
	Millis int64 `json:"millis"`
	// Rates are ids a second.
	Rates [len(Strategies)]float32 `json:"ids_per_second"`
	// CommitP99 is in microseconds; 0 if nothing was committed.
	CommitP99 uint32 `json:"commit_p99_micros"`
}

// Event is something that was seen at a time.
type Event struct {
	Millis int64 `json:"millis"`
	// Kind is started, paused, leader, joined, removed, alarm or over. Over ends an alarm; paused
	// ends a time without observations: the process stood still.
	Kind string `json:"kind"`
	// Text is of what it is: the tag of a leader, empty for none, or of a member, the title of an
	// alarm, or how long a pause was.
	Text     string `json:"text"`
	Critical bool   `json:"critical"`
}

// Observation is what a node sees of itself at a time.
type Observation struct {
	// Issued has ids since the start of the process, by strategy.
	Issued map[string]uint64
	// CommitP99 is that of the last seconds, in microseconds.
	CommitP99 uint64
	// Leader is the leader's tag; empty if none is known.
	Leader string
	// Members are the tags of the members.
	Members []string
	// Alarms are what is wrong, by title.
	Alarms map[string]Alarm
}

// Alarm is something that is wrong. Its text may change while it lasts.
type Alarm struct {
	Text     string
	Critical bool
}

// History keeps the newest samples and events. It is safe for concurrent use.
type History struct {
	mu      sync.Mutex
	samples []Sample
	events  []Event
	// seen is the newest observation, at its time.
	seen   Observation
	seenAt time.Duration
	// counted is what was issued up to the newest sample, or the start.
	counted   map[string]uint64
	countedAt time.Duration
	// alarms are those noted lately, by title.
	alarms map[string]alarm
}

// Observe is called about every second, with a time that rises. Each Every it makes a sample. A
// time without observations leaves no sample, but an event.
func (h *History) Observe(now time.Duration, o Observation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case len(h.events) == 0:
		h.alarms = map[string]alarm{}
		h.note(now, Event{Kind: "started"})
		h.counted, h.countedAt = o.Issued, now
	case now <= h.seenAt:
		return
	case now-h.seenAt >= Every:
		h.note(now, Event{Kind: "paused", Text: (now - h.seenAt).Round(time.Second).String()})
		h.counted, h.countedAt = o.Issued, now
	case now-h.countedAt >= Every:
		h.sample(now, o)
	}
	h.compare(now, o)
	h.seen, h.seenAt = o, now
}

func (h *History) sample(now time.Duration, o Observation) {
	s := Sample{Millis: now.Milliseconds(), CommitP99: uint32(min(o.CommitP99, 1<<32-1))}
	for i, strategy := range Strategies {
		s.Rates[i] = float32(float64(o.Issued[strategy]-h.counted[strategy]) / (now - h.countedAt).Seconds())
	}
	h.samples = newest(append(h.samples, s), MaxSamples)
	h.counted, h.countedAt = o.Issued, now
}

// compare notes what is other than it was.
func (h *History) compare(now time.Duration, o Observation) {
	if o.Leader != h.seen.Leader {
		h.note(now, Event{Kind: "leader", Text: o.Leader})
	}
	for _, tag := range o.Members {
		if len(h.seen.Members) > 0 && !slices.Contains(h.seen.Members, tag) { // At first none was known.
			h.note(now, Event{Kind: "joined", Text: tag})
		}
	}
	for _, tag := range h.seen.Members {
		if !slices.Contains(o.Members, tag) {
			h.note(now, Event{Kind: "removed", Text: tag})
		}
	}
	h.noteAlarms(now, o.Alarms)
}

// noteAlarms notes the alarms that begin and end. One that comes and goes is noted some times a
// minute, and as it is then.
func (h *History) noteAlarms(now time.Duration, open map[string]Alarm) {
	for _, title := range slices.Sorted(maps.Keys(open)) {
		if known := h.alarms[title]; !known.open && known.may(now) {
			h.alarms[title] = known.changed(now, open[title], true)
			h.note(now, Event{Kind: "alarm", Text: open[title].Text, Critical: open[title].Critical})
		}
	}
	for _, title := range slices.Sorted(maps.Keys(h.alarms)) {
		known := h.alarms[title]
		if _, still := open[title]; still {
			continue
		}
		switch {
		case known.open && known.may(now):
			h.alarms[title] = known.changed(now, known.Alarm, false)
			h.note(now, Event{Kind: "over", Text: known.Text})
		case !known.open && now-known.since >= flapping:
			delete(h.alarms, title)
		}
	}
}

// alarm is one that was noted, and how often since a time.
type alarm struct {
	Alarm
	open    bool
	since   time.Duration
	changes int
}

func (a alarm) may(now time.Duration) bool { return a.changes < maxChanges || now-a.since >= flapping }

func (a alarm) changed(now time.Duration, as Alarm, open bool) alarm {
	if a.changes == 0 || now-a.since >= flapping {
		a.since, a.changes = now, 0
	}
	return alarm{as, open, a.since, a.changes + 1}
}

func (h *History) note(now time.Duration, e Event) {
	e.Millis = now.Milliseconds()
	e.Text = e.Text[:min(len(e.Text), maxText)]
	h.events = newest(append(h.events, e), MaxEvents)
}

// newest returns the newest n of all, in the same memory, which append then makes no larger
// than twice that.
func newest[T any](all []T, n int) []T { return slices.Delete(all, 0, max(0, len(all)-n)) }

// Samples returns the samples, oldest first; never nil.
func (h *History) Samples() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Sample{}, h.samples...)
}

// Events returns the events, oldest first; never nil.
func (h *History) Events() []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Event{}, h.events...)
}
