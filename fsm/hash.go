package fsm

import (
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// The kinds of records.
const (
	recordDatabase statehash.RecordKind = iota + 1
	recordIdentity
	recordHiddenIdentity
	recordHiLo
	recordClaim
	recordMember
	recordSession
	recordSessionResult
	recordRequest
	recordRequestFloor
	recordSetting
	recordEtags
	recordCluster
	recordFormat
	recordRoles
	recordFloor
	recordReleased
	recordMembership
	recordJoinToken
	recordSeries
	recordPrincipal
	recordRequestShare
	recordPool
	recordEtagCeiling
)

func hashDatabase(number uint32, name string) uint64 {
	var s statehash.Space
	return s.Begin(recordDatabase).Number(uint64(number)).Text(name).Hash()
}

func hashIdentity(kind statehash.RecordKind, db uint32, name string, last identityValue) uint64 {
	var s statehash.Space
	return s.Begin(kind).Number(uint64(db)).Number(uint64(last)).Text(name).Hash()
}

// hashHiLo hashes the tag and the packed counter as one text.
func hashHiLo(db uint32, tag string, packed packedHiLo) uint64 {
	var s statehash.Space
	r := s.Begin(recordHiLo).Number(uint64(db)).Number(uint64(len(tag))).Number(uint64(len(tag) + len(packed)))
	return append(append(r, tag...), packed...).Hash()
}

func hashClaim(db uint32, id string, steppedOver claimValue) uint64 {
	var s statehash.Space
	return s.Begin(recordClaim).Number(uint64(db)).Text(id).Flag(bool(steppedOver)).Hash()
}

func hashReleased(item claimItem) uint64 {
	var s statehash.Space
	return s.Begin(recordReleased).Number(uint64(item.db)).Text(item.id).Hash()
}

func hashMember(m *raftlogv1.Member) uint64 {
	var s statehash.Space
	return s.Begin(recordMember).Data(m.GetId()).Text(m.GetTag()).
		Text(m.GetGrpcAddress()).Text(m.GetRaftAddress()).Text(m.GetHttpAddress()).
		Flag(m.GetWatcher()).Flag(m.GetVoter()).Flag(m.GetRemoved()).
		Number(uint64(m.GetLogFormat())).Number(m.GetStarts()).Number(m.GetProcess()).Hash()
}

func hashSession(session *session) uint64 {
	var s statehash.Space
	return s.Begin(recordSession).Data(session.origin[:]).
		Number(session.number).Number(session.acknowledged).Hash()
}

// hashGroup takes of a refusal the reason alone: its words are for people, and releases
// may differ in them.
func hashGroup(session *session, sequence uint64, results [][]byte) uint64 {
	results = withoutWords(results)
	size := len(statehash.Space{})
	for _, result := range results {
		size += 8 + len(result)
	}
	r := append(make(statehash.Record, 0, size), byte(recordSessionResult))
	r = r.Data(session.origin[:]).Number(session.number).Number(sequence)
	for _, result := range results {
		r = r.Data(result)
	}
	return r.Hash()
}

// hashPrincipal is the hash of a principal in the hashes of its request ids.
func hashPrincipal(principal string) uint64 {
	var s statehash.Space
	return s.Begin(recordPrincipal).Text(principal).Hash()
}

func hashRequestShare(share, floor uint64) uint64 {
	var s statehash.Space
	return s.Begin(recordRequestShare).Number(share).Number(floor).Hash()
}

func hashRequest(share, position uint64, e *requestEntry, result []byte) uint64 {
	var s statehash.Space
	return s.Begin(recordRequest).Number(share).Number(position).Data(e.key[:]).
		Number(e.fingerprint).Number(e.index).Data(result).Hash()
}

// hashNamed takes the hash of all that a series or a pool stores.
func hashNamed(kind statehash.RecordKind, db uint32, name string, stored uint64) uint64 {
	var s statehash.Space
	return s.Begin(kind).Number(uint64(db)).Number(stored).Text(name).Hash()
}

func hashSetting(id settingID, value int64) uint64 {
	var s statehash.Space
	return s.Begin(recordSetting).Text(settingTable[id].Key).Number(uint64(value)).Hash()
}

// hashEtags hashes the fields of a record of etags beside its ceilings.
func hashEtags(e *raftlogv1.EtagRecord) uint64 {
	var s statehash.Space
	return s.Begin(recordEtags).Data(e.GetNode()).Number(e.GetStart()).Flag(e.GetClean()).Number(e.GetFloor()).Hash()
}

func hashCeiling(node []byte, c *raftlogv1.EtagCeiling) uint64 {
	var s statehash.Space
	return s.Begin(recordEtagCeiling).Data(node).Number(c.GetCeiling()).Number(c.GetLast()).Number(c.GetFloor()).Text(c.GetDatabase()).Hash()
}

func hashRoles(roles *roleStore) uint64 {
	r := append(make(statehash.Record, 0, 32+len(roles.encoded)), byte(recordRoles))
	return r.Number(roles.setAt).Data(roles.encoded).Hash()
}

func hashCluster(id []byte) uint64 {
	var s statehash.Space
	return s.Begin(recordCluster).Data(id).Hash()
}

// hashNumber is the hash of a single number; 0 while it has a cluster's first value, which has no
// record.
func hashNumber(kind statehash.RecordKind, number, first uint64) uint64 {
	if number == first {
		return 0
	}
	var s statehash.Space
	return s.Begin(kind).Number(number).Hash()
}
