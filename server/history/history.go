// Package history is a node's memory of what it did in the last two hours, so that an
// incident can be looked at after it: rates, commit times, events, and the names in use.
//
// It is in memory only and bounded, whatever names and events there are: some hundred kB. It
// reads no clock. Times are durations since the process began, by the monotonic clock, so that
// a clock that is set changes nothing.
package history

import (
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
)

// Strategies are what Sample.Rates has, in this order: the labels of idnode_ids_issued_total.
var Strategies = [...]string{"identity", "hilo", "server_side", "guid", "semantic", "series"}

// Sample is what the node did in the Every before At.
type Sample struct {
	At time.Duration
	// Rates are ids a second.
	Rates [len(Strategies)]float32
	// CommitP99 is in microseconds; 0 if nothing was committed.
	CommitP99 uint32
}

// Kind is that of an event.
type Kind string

// The kinds of events.
const (
	// Started is the first observation, and Paused a time without observations: the process
	// stood still.
	Started Kind = "started"
	Paused  Kind = "paused"
	// Leader is a change of the leader that the node knows.
	Leader Kind = "leader"
	// Joined and Removed are those of members.
	Joined  Kind = "joined"
	Removed Kind = "removed"
	// Alarm is an alarm that begins, Over one that ends.
	Alarm Kind = "alarm"
	Over  Kind = "over"
)

// Event is something that was seen at a time.
type Event struct {
	At   time.Duration `json:"-"`
	Kind Kind          `json:"kind"`
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
	// Alarms are the titles of what is wrong; true for what is critical.
	Alarms map[string]bool
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
	// leader is the newest known one.
	leader string
}

// Observe is called about every second, with a time that rises. Each Every it makes a sample. A
// time without observations leaves no sample, but an event.
func (h *History) Observe(now time.Duration, o Observation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case len(h.events) == 0:
		h.note(Event{At: now, Kind: Started})
		h.counted, h.countedAt = o.Issued, now
	case now <= h.seenAt:
		return
	case now-h.seenAt >= Every:
		h.note(Event{At: now, Kind: Paused, Text: (now - h.seenAt).Round(time.Second).String()})
		h.counted, h.countedAt = o.Issued, now
	case now-h.countedAt >= Every:
		h.sample(now, o)
	}
	h.compare(now, o)
	h.seen, h.seenAt = o, now
}

func (h *History) sample(now time.Duration, o Observation) {
	s := Sample{At: now, CommitP99: uint32(min(o.CommitP99, 1<<32-1))}
	for i, strategy := range Strategies {
		s.Rates[i] = float32(float64(o.Issued[strategy]-h.counted[strategy]) / (now - h.countedAt).Seconds())
	}
	h.samples = newest(append(h.samples, s), MaxSamples)
	h.counted, h.countedAt = o.Issued, now
}

// compare notes what is other than it was.
func (h *History) compare(now time.Duration, o Observation) {
	if o.Leader != h.seen.Leader {
		h.note(Event{At: now, Kind: Leader, Text: o.Leader})
	}
	for _, tag := range o.Members {
		if len(h.seen.Members) > 0 && !slices.Contains(h.seen.Members, tag) { // At first none was known.
			h.note(Event{At: now, Kind: Joined, Text: tag})
		}
	}
	for _, tag := range h.seen.Members {
		if !slices.Contains(o.Members, tag) {
			h.note(Event{At: now, Kind: Removed, Text: tag})
		}
	}
	h.noteAlarms(now, Alarm, o.Alarms, h.seen.Alarms)
	h.noteAlarms(now, Over, h.seen.Alarms, o.Alarms)
}

// noteAlarms notes the alarms of one set that are not in the other.
func (h *History) noteAlarms(now time.Duration, kind Kind, of, other map[string]bool) {
	var titles []string
	for title := range of {
		if _, both := other[title]; !both {
			titles = append(titles, title)
		}
	}
	slices.Sort(titles)
	for _, title := range titles {
		h.note(Event{At: now, Kind: kind, Text: title, Critical: of[title]})
	}
}

func (h *History) note(e Event) {
	e.Text = e.Text[:min(len(e.Text), maxText)]
	h.events = newest(append(h.events, e), MaxEvents)
}

// newest returns the newest n of all, in the same memory, which append then makes no larger
// than twice that.
func newest[T any](all []T, n int) []T {
	if len(all) <= n {
		return all
	}
	return all[:copy(all, all[len(all)-n:])]
}

// Samples returns the samples, oldest first.
func (h *History) Samples() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.samples)
}

// Events returns the events, oldest first.
func (h *History) Events() []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}
