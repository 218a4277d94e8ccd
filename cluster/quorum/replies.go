package quorum

import (
	"slices"
	"sync"
	"time"
)

// replies remembers when each voter last answered a ping, by the time the ping
// was sent.
type replies struct {
	mu     sync.Mutex
	sent   map[string]time.Time
	asking map[string]bool
}

func newReplies() *replies {
	return &replies{sent: map[string]time.Time{}, asking: map[string]bool{}}
}

// ask reports whether the voter may be pinged now: one ping at a time.
func (r *replies) ask(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking[id] {
		return false
	}
	r.asking[id] = true
	return true
}

// answered records the end of a ping that ask allowed.
func (r *replies) answered(id string, sent time.Time, ok bool) {
	r.mu.Lock()
	delete(r.asking, id)
	r.mu.Unlock()
	r.heard(id, sent, ok)
}

// heard records the end of any ping.
func (r *replies) heard(id string, sent time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ok && sent.After(r.sent[id]) {
		r.sent[id] = sent
	}
}

// majority returns the newest moment at which a majority of the voters was in
// reach: self counts as now. The zero time means never.
func (r *replies) majority(now time.Time, self string, voters []string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	times := make([]time.Time, 0, len(voters))
	for _, id := range voters {
		if id == self {
			times = append(times, now)
			continue
		}
		times = append(times, r.sent[id])
	}
	if len(times) == 0 {
		return time.Time{}
	}
	slices.SortFunc(times, func(x, y time.Time) int { return y.Compare(x) })
	return times[len(times)/2]
}
