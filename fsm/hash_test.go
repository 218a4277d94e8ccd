package fsm

import (
	"errors"
	"testing"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/series"
)

// hashFromScratch computes the hash of everything that is stored.
func hashFromScratch(c *contents) uint64 {
	var h statehash.Sum
	for i, name := range c.databases.names {
		h.Add(hashDatabase(uint32(i), name))
	}
	for _, hidden := range []bool{false, true} {
		c.identities.table(hidden).Ascend(0, "", func(e table.Entry[identityValue]) bool {
			h.Add(hashIdentity(e.Database, e.Name, int64(e.Value), hidden))
			return true
		})
	}
	c.hilos.counters.Ascend(0, "", func(e table.Entry[packedHiLo]) bool {
		h.Add(hashHiLo(e.Database, e.Name, e.Value))
		return true
	})
	c.claims.claimed.Ascend(0, "", func(e table.Entry[claimValue]) bool {
		h.Add(hashClaim(claimItem{db: e.Database, id: e.Name}, e.Value))
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
			h.Add(hashGroup(s, r.sequence, r.results, c.strict()))
		}
	}
	for _, e := range c.etags.byNode {
		h.Add(hashEtags(e, c.strict()))
	}
	for position := c.requests.first; position < c.requests.next; position++ {
		h.Add(c.requests.hashAt(position))
	}
	h.Add(hashRequestFloor(c.requests.floor))
	for id := range settingCount {
		if c.settings.changed(id) {
			h.Add(hashSetting(id, c.settings.value(id)))
		}
	}
	if c.formed() {
		h.Add(hashCluster(c.clusterID))
	}
	h.Add(hashFormat(c.format))
	h.Add(hashMembership(c.members.index))
	h.Add(hashFloor(c.floor))
	for hash, t := range c.joinTokens.byHash {
		h.Add(hashJoinToken(hash, t))
	}
	if c.roles != nil {
		h.Add(hashRoles(c.roles))
	}
	c.series.byName.Scan(func(i *seriesItem) bool {
		h.Add(hashSeries(i.db, i.name, copied(i.series).Hash()))
		return true
	})
	return uint64(h)
}

// copied returns a series with what the other stores, put in piece by piece.
func copied(s *series.Series) *series.Series {
	f := s.Freeze()
	d, version := f.Definition()
	again, err := series.Restore(d, version, f.Suspended(), f.Now())
	if err != nil {
		panic(err)
	}
	for p := range f.Pieces {
		err = errors.Join(err, again.PutNumbers(p))
	}
	for l := range f.Lost {
		err = errors.Join(err, again.PutLost(l))
	}
	if err = errors.Join(err, again.Verify()); err != nil {
		panic(err)
	}
	return again
}

// TestWordsOfRefusalsAreNotState: two releases may word a refusal differently, and have
// equal states anyway, from StrictFormat on.
func TestWordsOfRefusalsAreNotState(t *testing.T) {
	with := func(format uint32, field, words string, reason raftlogv1.RefusalReason, index uint64) *contents {
		c := newContents()
		c.setFormat(MergeFormat)
		c.sessions.open(nodeID{1}, 5)
		applied := op.AppendValue(op.AppendLogIndex(nil, 9), 1)
		refused := appendRefused(nil, index, refuse(reason, field, "%s", words))
		c.sessions.keep(c.sessions.byOrigin[nodeID{1}], 1, [][]byte{applied, refused, applied}, c.strict())
		c.setFormat(format)
		c.sessions.keep(c.sessions.byOrigin[nodeID{1}], 2, [][]byte{refused}, c.strict())
		if c.hash() != hashFromScratch(c) {
			t.Errorf("format %d: the hash is not that of what is stored", format)
		}
		return c
	}
	const claimed, exhausted = raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED, raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED
	for format, want := range map[uint32]bool{MergeFormat: false, StrictFormat: true} {
		one, two := with(format, "id", "is claimed", claimed, 9), with(format, "ID", "is claimed already", claimed, 9)
		if (one.hash() == two.hash()) != want {
			t.Errorf("format %d: equal hashes %v, want %v", format, !want, want)
		}
	}
	one := with(StrictFormat, "id", "x", claimed, 9)
	if one.hash() == with(StrictFormat, "id", "x", exhausted, 9).hash() {
		t.Error("the reason is not in the hash")
	}
	if one.hash() == with(StrictFormat, "id", "x", claimed, 10).hash() {
		t.Error("the log index is not in the hash")
	}
}

// TestResultsAreHashedAgainWithTheFormat: the hash is that of a state that is
// restored from its snapshot, before and after the raise.
func TestResultsAreHashedAgainWithTheFormat(t *testing.T) {
	l := newLogOf(t, MergeFormat)
	var session uint64
	for _, tag := range []string{"C", "B", "A"} {
		m := testMember(tag)
		m.LogFormat = StrictFormat
		session = l.mustApplied(l.raw(announceOperation(m))).GetMember().GetSession()
	}
	for i, operation := range [][]byte{
		encodeOperation(opClaimID("users/1")), encodeOperation(opClaimID("users/1")),
		formatRaiseOperation(StrictFormat), encodeOperation(opClaimID("users/1")),
	} {
		l.apply(raftlog.Group{Origin: testMember("A").GetId(), Session: session, Sequence: uint64(i + 1), Operations: [][]byte{operation}})
		_, hash := l.state.Hash()
		if _, again := restored(t, snapshotOf(t, l.state)).Hash(); hash != again || hash != hashFromScratch(l.state.contents) {
			t.Errorf("after %d groups: the hash is %x, %x when restored, %x when computed", i+1, hash, again, hashFromScratch(l.state.contents))
		}
	}
	if l.state.Format() != StrictFormat {
		t.Error("the format was not raised")
	}
}

// TestEachFloorOfEtagsIsInTheHash from StrictFormat on: of a record, or of one of its
// counters. Below it, states are hashed as nodes of format 2 do.
func TestEachFloorOfEtagsIsInTheHash(t *testing.T) {
	ofRecord := &etagRecord{node: nodeID{1}, counters: []etagCounter{{database: "db", ceiling: 1}}, floor: 7}
	ofCounter := &etagRecord{node: nodeID{1}, counters: []etagCounter{{database: "db", ceiling: 1, floor: 7}}}
	none := &etagRecord{node: nodeID{1}, counters: []etagCounter{{database: "db", ceiling: 1}}}
	for format, like := range map[uint32]bool{MergeFormat: true, StrictFormat: false} {
		with := func(e *etagRecord) uint64 {
			c := newContents()
			c.setFormat(MergeFormat)
			c.etags.put(e)
			c.setFormat(format)
			if c.hash() != hashFromScratch(c) {
				t.Errorf("format %d: the hash is not that of what is stored", format)
			}
			return c.hash()
		}
		if got := with(ofRecord) == with(ofCounter); got != like {
			t.Errorf("format %d: a floor of the record is like one of a counter: %t", format, got)
		}
		if with(none) == with(ofRecord) || with(none) == with(ofCounter) {
			t.Errorf("format %d: a floor is not in the hash", format)
		}
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
