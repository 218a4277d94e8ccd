package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Recovery is how a cluster continues that has lost its quorum permanently.
type Recovery struct {
	// Keep are the tags of the members that go on. All others are removed.
	Keep []string
	// SkipAhead is how much every counter is raised, since only the lost members may know
	// some ids; not negative.
	SkipAhead int64
}

// Recovered is what a recovery did.
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

// Recover turns the state into that of a new cluster: with a new id, without the lost
// members, with every counter raised, and with no node started yet. It is the only change
// of the state that is not in the log, so the log is dropped with it.
//
// Invariant: survivors that recover in different ways, or from different clusters,
// have different cluster ids afterwards, and never form one cluster.
func (s *State) Recover(r Recovery) (Recovered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.contents
	keep, err := c.kept(r)
	if err != nil {
		return Recovered{}, err
	}
	done := Recovered{ClusterID: c.recoveredID(keep, r.SkipAhead), Epoch: c.floor.epoch + 1}
	c.setFormat(max(c.format, MergeFormat))
	done.Removed = c.removeOthers(keep)
	c.members.forgetStarts(keep)
	c.invitations = newInvitations() // One may have admitted a node that only the lost members know.
	// Not by the log's index, which may differ between survivors. Survivors that know
	// different members still differ in this too.
	c.members.settle(0, c.strict())
	done.Raised = c.skipAhead(r.SkipAhead)
	c.floor = floor{names: plus(c.floor.names, r.SkipAhead), epoch: done.Epoch}
	c.clusterID = slices.Clone(done.ClusterID)
	return done, nil
}

// kept returns the members that go on, by tag.
func (c *contents) kept(r Recovery) ([]*raftlogv1.Member, error) {
	var keep []*raftlogv1.Member
	voters := 0
	for _, tag := range slices.Compact(slices.Sorted(slices.Values(r.Keep))) {
		m := c.members.byTag(tag)
		if m == nil || m.GetRemoved() {
			return nil, fmt.Errorf("fsm: there is no member %s", tag)
		}
		keep = append(keep, m)
		if m.GetVoter() {
			voters++
		}
	}
	switch {
	case !c.formed():
		return nil, errors.New("fsm: the state is of no cluster")
	case voters == 0:
		return nil, errors.New("fsm: none of the members that go on votes")
	case r.SkipAhead < 0:
		return nil, fmt.Errorf("fsm: counters cannot skip ahead by %d", r.SkipAhead)
	}
	return keep, nil
}

// recoveredID is the id of the cluster after the recovery.
func (c *contents) recoveredID(keep []*raftlogv1.Member, skip int64) []byte {
	h := sha256.New()
	h.Write([]byte("idnode recovered cluster\n")) // It never fails.
	h.Write(c.clusterID)
	numbers := binary.BigEndian.AppendUint64(nil, c.floor.epoch)
	h.Write(binary.BigEndian.AppendUint64(numbers, uint64(skip)))
	for _, m := range keep {
		h.Write(m.GetId())
	}
	return h.Sum(nil)[:clusterIDBytes]
}

// removeOthers removes all members but those that go on, ends all sessions, and
// returns the tags that were removed.
func (c *contents) removeOthers(keep []*raftlogv1.Member) (removed []string) {
	for _, m := range c.members.sorted() {
		c.sessions.drop(nodeID(m.GetId()))
		if m.GetRemoved() || slices.ContainsFunc(keep, func(k *raftlogv1.Member) bool { return proto.Equal(k, m) }) {
			continue
		}
		c.members.remove(m)
		c.etags.drop(nodeID(m.GetId()))
		removed = append(removed, m.GetTag())
	}
	return removed
}

// forgetStarts drops the survivors' numbers of starts. A survivor's directory may have
// been set back in the old cluster; an operator decided to keep it, and the new cluster
// must not refuse it for that.
func (s *members) forgetStarts(keep []*raftlogv1.Member) {
	for _, m := range keep {
		s.change(m, func(m *raftlogv1.Member) { m.Starts, m.Process = 0, 0 })
	}
}

// skipAhead raises every counter that is known, also those of etags, and returns
// how many identities and HiLo counters there are.
func (c *contents) skipAhead(by int64) (raised int) {
	if by == 0 {
		return 0
	}
	for _, hidden := range []bool{false, true} {
		c.identityTable(hidden).Freeze().Scan(func(e table.Entry[identityValue]) bool {
			found := c.findIdentity(e.Database, e.Name)
			c.putIdentity(found, identity.Counter{Last: plus(found.last, by), Hidden: hidden})
			raised++
			return true
		})
	}
	c.hilos.Freeze().Scan(func(e table.Entry[packedHiLo]) bool {
		found := c.findHiLo(e.Database, e.Name)
		peak := plus(found.counter.Peak, by)
		c.putHiLo(found, hilo.Counter{Max: plus(found.counter.Max, by), Peak: peak})
		raised++
		return true
	})
	c.etags.skipAhead(uint64(by))
	return raised
}

// past returns the record with floors above every etag that the node may have
// used, by far.
func (e *etagRecord) past(by uint64) *etagRecord {
	counters := slices.Clone(e.counters)
	for i := range counters {
		k := &counters[i]
		k.floor = max(k.floor, k.ceiling, k.last) + by
	}
	return &etagRecord{start: e.start, clean: e.clean, floor: e.floor, counters: counters}
}

// plus adds a number that is not negative, and saturates.
func plus(value, add int64) int64 {
	if value > math.MaxInt64-add {
		return math.MaxInt64
	}
	return value + add
}
