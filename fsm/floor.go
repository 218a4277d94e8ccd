package fsm

import (
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// floor covers what is unknown after a disaster. After a restore into another cluster, or
// a recovery, names may have been used that this cluster does not know: their counters
// begin above names, as if used up to it. The merge that raises the floor raises known
// names to it.
//
// Invariant: neither number ever falls, and series stays set.
type floor struct {
	// names is the value of unknown identities and HiLo counters, from 0.
	names int64
	// epoch counts the recoveries.
	epoch uint64
	// series means that there may have been unknown series: a new series begins suspended.
	series bool
}

// hilo returns the HiLo counter of an unknown tag.
func (f floor) hilo() hilo.Counter { return hilo.Counter{Max: f.names, Peak: f.names} }

func (f *floor) restore(m *raftlogv1.FloorRecord) error {
	restored := floor{names: m.GetNames(), epoch: m.GetEpoch(), series: m.GetSeries()}
	if *f != (floor{}) || restored == (floor{}) || restored.names < 0 {
		return corrupt("a floor of %d in epoch %d, or two", restored.names, restored.epoch)
	}
	*f = restored
	return nil
}

// hashFloor is 0 without a floor, which has no record.
func hashFloor(f floor) uint64 {
	if f == (floor{}) {
		return 0
	}
	var s statehash.Space
	return s.Begin(recordFloor).Number(uint64(f.names)).Number(f.epoch).Flag(f.series).Hash()
}

// Floor returns the value of counters of unknown names, 0 in a cluster that knows all of
// its past, and the number of recoveries.
func (s *State) Floor() (names int64, epoch uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contents.floor.names, s.contents.floor.epoch
}
