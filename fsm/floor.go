package fsm

import (
	"github.com/idnode/idnode/hilo"
)

// floor says what is not known of the time before a disaster. After a restore
// into another cluster, or a recovery, names may have been used of which nobody
// here knows: their counters begin above names, as if they had been used up to
// it. Names that are known are raised to it by the merge that raises the floor.
//
// Invariant: neither number ever falls.
type floor struct {
	// names is where identities and HiLo counters stand that are not known, from 0.
	names int64
	// epoch counts the recoveries.
	epoch uint64
}

// hilo returns the HiLo counter of a tag that is not known.
func (f floor) hilo() hilo.Counter { return hilo.Counter{Max: f.names, Peak: f.names} }

// setFloor stores the floor.
func (c *contents) setFloor(f floor) {
	c.hash.remove(hashFloor(c.floor))
	c.floor = f
	c.hash.add(hashFloor(f))
}

// hashFloor is 0 if there is none: that is no record.
func hashFloor(f floor) uint64 {
	if f == (floor{}) {
		return 0
	}
	var s recordSpace
	return s.begin(recordFloor).number(uint64(f.names)).number(f.epoch).sum()
}

// Floor returns where counters of names stand that are not known, 0 in a cluster
// that knows all of its past, and how many times it was recovered.
func (s *State) Floor() (names int64, epoch uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contents.floor.names, s.contents.floor.epoch
}
