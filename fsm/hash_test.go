package fsm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/snowflake"
)

// hashFromScratch computes the hash of everything that is stored.
func hashFromScratch(c *contents) uint64 {
	var h statehash.Sum
	c.databases.names.Scan(func(n uint32, name string) bool {
		h.Add(hashDatabase(n, name))
		return true
	})
	for _, hidden := range []bool{false, true} {
		c.identities.table(hidden).Ascend(0, "", func(e table.Entry[identityValue]) bool {
			h.Add(c.identities.table(hidden).record(e.Database, e.Name, e.Value))
			return true
		})
	}
	c.hilos.counters.Ascend(0, "", func(e table.Entry[packedHiLo]) bool {
		h.Add(hashHiLo(e.Database, e.Name, e.Value))
		return true
	})
	c.claims.claimed.Ascend(0, "", func(e table.Entry[claimValue]) bool {
		h.Add(hashClaim(e.Database, e.Name, e.Value))
		return true
	})
	c.claims.released.Ascend(0, "", func(e table.Entry[struct{}]) bool {
		h.Add(hashReleased(claimItem{db: e.Database, id: e.Name}))
		return true
	})
	for _, m := range c.members.byID {
		h.Add(hashMember(m))
	}
	for _, s := range c.sessions.byOrigin {
		h.Add(hashSession(s))
		for _, r := range s.results {
			h.Add(hashGroup(s, r.sequence, r.results))
		}
	}
	for _, e := range c.etags.byNode {
		h.Add(hashEtags(e.head))
		for _, c := range e.ceilings.Values() {
			h.Add(hashCeiling(e.head.GetNode(), c))
		}
	}
	c.requests.shares.Ascend(0, "", func(shared table.Entry[*requestShare]) bool {
		principal, s := hashPrincipal(shared.Name), shared.Value
		h.Add(hashRequestShare(principal, s.floor))
		for position := s.first; position != s.next; position++ {
			chunk, e := s.at(position)
			h.Add(hashRequest(principal, position, e, chunk.result(e)))
		}
		return true
	})
	h.Add(hashNumber(recordRequestFloor, c.requests.floor, 0))
	for id := range settingCount {
		if c.settings.changed(id) {
			h.Add(hashSetting(id, c.settings.value(id)))
		}
	}
	if c.formed() {
		h.Add(hashCluster(c.clusterID))
	}
	h.Add(hashNumber(recordFormat, uint64(c.format), firstFormat))
	h.Add(hashNumber(recordMembership, c.members.index, 0))
	h.Add(hashFloor(c.floor))
	for _, t := range c.joinTokens.byHash {
		h.Add(hashJoinToken(t))
	}
	if c.roles != nil {
		h.Add(hashRoles(c.roles))
	}
	c.series.all(func(i *seriesItem) bool {
		h.Add(hashNamed(recordSeries, i.db, i.name, copied(i.is).Hash()))
		return true
	})
	c.pools.all(func(i *poolItem) bool {
		h.Add(hashNamed(recordPool, i.db, i.name, copiedPool(i.is).Hash()))
		return true
	})
	return uint64(h)
}

// copied returns a series with the content of another, put in piece by piece.
func copied(s *series.Series) *series.Series {
	f := s.Freeze()
	m, _ := f.Record()
	again, err := series.Restore(m)
	if err != nil {
		panic(err)
	}
	for p := range f.Pieces {
		err = errors.Join(err, again.PutNumbers(p))
	}
	for l := range f.Lost {
		err = errors.Join(err, again.PutLost(l))
	}
	if err = errors.Join(err, verified(again)); err != nil {
		panic(err)
	}
	return again
}

// copiedPool returns a pool with the content of another, put in lease by lease.
func copiedPool(p *snowflake.Pool) *snowflake.Pool {
	f := p.Freeze()
	again, err := snowflake.Restore(f.Stored)
	if err != nil {
		panic(err)
	}
	for l := range f.Leases {
		err = errors.Join(err, again.Put(l))
	}
	if err != nil {
		panic(err)
	}
	return again
}

// TestWordsOfRefusalsAreNotState: two releases may word a refusal differently, and have
// equal states anyway.
func TestWordsOfRefusalsAreNotState(t *testing.T) {
	with := func(field, words string, reason raftlogv1.RefusalReason, index uint64) uint64 {
		c := newContents()
		c.sessions.open(nodeid.ID{1}, 5)
		applied := op.AppendValue(op.AppendLogIndex(nil, 9), 1)
		refused := appendRefused(nil, index, refuse(reason, field, "%s", words))
		c.sessions.keep(c.sessions.byOrigin[nodeid.ID{1}], 1, [][]byte{applied, refused, applied})
		return c.hash()
	}
	const claimed, exhausted = raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED, raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED
	one := with("id", "is claimed", claimed, 9)
	if one != with("ID", "is claimed already", claimed, 9) {
		t.Error("the words are in the hash")
	}
	if one == with("id", "is claimed", exhausted, 9) {
		t.Error("the reason is not in the hash")
	}
	if one == with("id", "is claimed", claimed, 10) {
		t.Error("the log index is not in the hash")
	}
}

// TestEachFloorOfEtagsIsInTheHash: of a node, or of one of its counters; and whose it is.
func TestEachFloorOfEtagsIsInTheHash(t *testing.T) {
	hash := func(node byte, floor, ofCounter uint64) statehash.Sum {
		e := newNodeEtags(&raftlogv1.EtagRecord{Node: bytes.Repeat([]byte{node}, nodeid.Size), Floor: floor})
		e.put(&raftlogv1.EtagCeiling{Database: "db", Ceiling: 1, Floor: ofCounter})
		s := etagStore{byNode: map[nodeid.ID]*nodeEtags{}}
		s.put(e)
		return s.hash
	}
	seen := map[statehash.Sum]bool{hash(1, 0, 0): true, hash(2, 0, 0): true, hash(1, 7, 0): true, hash(1, 0, 7): true}
	if len(seen) != 4 {
		t.Errorf("of four nodes with different etags there are %d hashes", len(seen))
	}
}

// TestTheProcessOfAMemberIsInTheHash, whatever number its start has.
func TestTheProcessOfAMemberIsInTheHash(t *testing.T) {
	one, two := testMember("A"), testMember("A")
	one.Process, two.Process = 1, 2
	if hashMember(one) == hashMember(two) {
		t.Error("two processes have one hash")
	}
}
