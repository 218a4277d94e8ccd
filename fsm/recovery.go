package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/snowflake"
)

// Recovery is how a cluster continues that has lost its quorum permanently.
type Recovery struct {
	// Keep are the tags of the members that continue. All others are removed.
	Keep []string
	// SkipAhead is the raise of every counter, since only the lost members may have recorded
	// some ids; not negative.
	SkipAhead int64
}

// Recovered is the result of a recovery.
type Recovered struct {
	// ClusterID is the cluster's new id.
	ClusterID []byte
	// Epoch counts the recoveries, this one included.
	Epoch uint64
	// Removed are the tags of the members that are lost.
	Removed []string
	// Raised counts the identities and HiLo counters that were raised.
	Raised int
}

// indexLeap is the distance that the log's index leaps at a recovery: further than any lost member can be ahead of a
// survivor's last entry, which would take years. So a caller's log index is unambiguous about the side of a recovery
// on which it was seen: a retry with an index of the old log is never taken for a call of the new one. 500 recoveries
// stay below 2^53, which every language can count.
const indexLeap = 1 << 44

// Recover turns the state into that of a new cluster: with a new id, without the lost members, with every counter
// raised, and with no node started yet. It is the only change of the state that is not in the log, so the log is
// dropped with it. The applied index leaps: the log continues from there.
//
// Invariant: survivors that recover in different ways, or from different clusters,
// have different cluster ids afterwards, and never form one cluster.
func (s *State) Recover(r Recovery) (Recovered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.contents
	keep, err := c.members.kept(r.Keep)
	if err == nil {
		err = r.check(keep, c.formed())
	}
	if err != nil {
		return Recovered{}, err
	}
	done := Recovered{ClusterID: recoveredID(c.clusterID, c.floor.epoch, keep, r.SkipAhead), Epoch: c.floor.epoch + 1}
	for _, m := range c.members.removeOthers(keep) {
		c.etags.drop(nodeid.ID(m.GetId()))
		done.Removed = append(done.Removed, m.GetTag())
	}
	c.sessions = newSessions()
	c.members.forgetStarts(keep)
	c.joinTokens = newJoinTokens() // A token may have let in a node that only the lost members know.
	// Not by the log's index, which may differ between survivors. Survivors that know
	// different members still differ in this too.
	c.members.settle(0)
	// The lost members may have applied entries at indexes below this one, which no caller of the new cluster has seen.
	c.applied += indexLeap
	c.requests.forget(c.applied)
	if by := r.SkipAhead; by > 0 {
		done.Raised = c.identities.skipAhead(by) + c.hilos.skipAhead(by)
		c.etags.skipAhead(uint64(by))
	}
	c.series.changeAll((*series.Series).Suspend) // Others may have given newer numbers, and other leases.
	c.pools.changeAll(func(p *snowflake.Pool) { p.Forget(0) })
	c.floor.names, c.floor.epoch, c.floor.incomplete = plus(c.floor.names, r.SkipAhead), done.Epoch, true
	c.clusterID = slices.Clone(done.ClusterID)
	s.applied.set(c.applied)
	return done, nil
}

// check refuses an impossible recovery; keep are the members that continue.
func (r Recovery) check(keep []*raftlogv1.Member, formed bool) error {
	switch {
	case !formed:
		return errors.New("fsm: the state is of no cluster")
	case !slices.ContainsFunc(keep, (*raftlogv1.Member).GetVoter):
		return errors.New("fsm: none of the members that go on votes")
	case r.SkipAhead < 0:
		return fmt.Errorf("fsm: counters cannot skip ahead by %d", r.SkipAhead)
	}
	return nil
}

// recoveredID is the id of the cluster after the recovery in an epoch.
func recoveredID(before []byte, epoch uint64, keep []*raftlogv1.Member, skip int64) []byte {
	h := sha256.New()
	h.Write([]byte("idnode recovered cluster\n")) // It never fails.
	h.Write(before)
	numbers := binary.BigEndian.AppendUint64(nil, epoch)
	h.Write(binary.BigEndian.AppendUint64(numbers, uint64(skip)))
	for _, m := range keep {
		h.Write(m.GetId())
	}
	return h.Sum(nil)[:clusterIDBytes]
}

func (s *memberStore) kept(tags []string) (keep []*raftlogv1.Member, _ error) {
	for _, tag := range slices.Compact(slices.Sorted(slices.Values(tags))) {
		m := s.byTag(tag)
		if m == nil || m.GetRemoved() {
			return nil, fmt.Errorf("fsm: there is no member %s", tag)
		}
		keep = append(keep, m)
	}
	return keep, nil
}

// removeOthers removes all members except those that continue, and returns the removed
// members.
func (s *memberStore) removeOthers(keep []*raftlogv1.Member) (removed []*raftlogv1.Member) {
	for _, m := range s.sorted() {
		if !m.GetRemoved() && !slices.Contains(keep, m) {
			removed = append(removed, s.remove(m))
		}
	}
	return removed
}

// forgetStarts drops the survivors' numbers of starts. A survivor's directory may have
// been set back in the old cluster; an operator decided to keep it, and the new cluster
// must not refuse it for that.
func (s *memberStore) forgetStarts(keep []*raftlogv1.Member) {
	for _, m := range keep {
		s.change(m, func(m *raftlogv1.Member) { m.Starts, m.Process = 0, 0 })
	}
}

// plus adds a number that is not negative, and saturates.
func plus(value, add int64) int64 {
	if value > math.MaxInt64-add {
		return math.MaxInt64
	}
	return value + add
}
