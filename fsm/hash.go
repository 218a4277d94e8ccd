package fsm

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// stateHash is the hash of a state: the sum modulo 2^64 of the xxhash of each record that
// the state consists of. So it does not depend on the order of the records, and a change
// of one costs two hashes, whatever the size of the state. It finds bugs and damaged
// memory; it does not protect against forgery.
//
// Invariant: everything that is stored is in it, once. Tests compute it from
// scratch and compare.
type stateHash uint64

// add takes in a record's hash.
func (h *stateHash) add(record uint64) { *h += stateHash(record) }

// remove takes a record's hash out.
func (h *stateHash) remove(record uint64) { *h -= stateHash(record) }

// recordKind distinguishes the kinds of records.
type recordKind byte

const (
	recordDatabase recordKind = iota + 1
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
	recordInvitation
)

// record is a record's canonical encoding: the kind, then numbers in eight
// bytes, and texts after their length. It stays on the stack for all but long
// names.
type record []byte

// recordSpace is where a record is built.
type recordSpace [128]byte

func (s *recordSpace) begin(kind recordKind) record { return append(s[:0], byte(kind)) }

func (r record) number(v uint64) record { return binary.LittleEndian.AppendUint64(r, v) }

func (r record) text(s string) record { return append(r.number(uint64(len(s))), s...) }

func (r record) data(b []byte) record { return append(r.number(uint64(len(b))), b...) }

func (r record) flag(b bool) record {
	if b {
		return append(r, 1)
	}
	return append(r, 0)
}

func (r record) sum() uint64 { return xxhash.Sum64(r) }

func hashDatabase(number uint32, name string) uint64 {
	var s recordSpace
	return s.begin(recordDatabase).number(uint64(number)).text(name).sum()
}

func hashIdentity(db uint32, name string, last int64, hidden bool) uint64 {
	var s recordSpace
	kind := recordIdentity
	if hidden {
		kind = recordHiddenIdentity
	}
	return s.begin(kind).number(uint64(db)).number(uint64(last)).text(name).sum()
}

// hashHiLo takes the tag and the packed counter as one text.
func hashHiLo(db uint32, tag string, packed packedHiLo) uint64 {
	var s recordSpace
	r := s.begin(recordHiLo).number(uint64(db)).number(uint64(len(tag))).number(uint64(len(tag) + len(packed)))
	return append(append(r, tag...), packed...).sum()
}

func hashClaim(item claimItem, steppedOver claimValue) uint64 {
	var s recordSpace
	r := s.begin(recordClaim).number(uint64(item.db)).text(item.id)
	// Without the mark, it is hashed as it was before there was one.
	if steppedOver {
		r = r.flag(true)
	}
	return r.sum()
}

func hashReleased(item claimItem) uint64 {
	var s recordSpace
	return s.begin(recordReleased).number(uint64(item.db)).text(item.id).sum()
}

func hashMember(m *raftlogv1.Member) uint64 {
	var s recordSpace
	r := s.begin(recordMember).data(m.GetId()).text(m.GetTag()).
		text(m.GetGrpcAddress()).text(m.GetRaftAddress()).text(m.GetHttpAddress()).
		flag(m.GetWatcher()).flag(m.GetVoter()).flag(m.GetRemoved()).
		number(uint64(m.GetLogFormat()))
	if m.GetStarts() > 0 {
		r = r.number(m.GetStarts()).number(m.GetProcess())
	}
	return r.sum()
}

func hashSession(session *session) uint64 {
	var s recordSpace
	return s.begin(recordSession).data(session.origin[:]).
		number(session.number).number(session.acknowledged).sum()
}

// hashGroup takes, from StrictFormat on, of a refusal the reason alone: its words are for
// people, and releases may differ in them.
func hashGroup(session *session, sequence uint64, results [][]byte, strict bool) uint64 {
	if strict {
		results = withoutWords(results)
	}
	size := len(recordSpace{})
	for _, result := range results {
		size += 8 + len(result)
	}
	r := append(make(record, 0, size), byte(recordSessionResult))
	r = r.data(session.origin[:]).number(session.number).number(sequence)
	for _, result := range results {
		r = r.data(result)
	}
	return r.sum()
}

func hashRequest(position uint64, e *requestEntry, result []byte) uint64 {
	var s recordSpace
	return s.begin(recordRequest).number(position).data(e.key[:]).
		number(e.fingerprint).number(e.index).data(result).sum()
}

// hashRequestFloor is 0 for the floor of a window that never forgot anything:
// that is no record.
func hashRequestFloor(floor uint64) uint64 {
	if floor == 0 {
		return 0
	}
	var s recordSpace
	return s.begin(recordRequestFloor).number(floor).sum()
}

func hashSetting(id settingID, value int64) uint64 {
	var s recordSpace
	return s.begin(recordSetting).text(settingTable[id].Key).number(uint64(value)).sum()
}

func hashEtags(e *etagRecord) uint64 {
	const each = 48 // bytes of a counter whose database has a name of usual length
	r := append(make(record, 0, len(recordSpace{})+each*len(e.counters)), byte(recordEtags))
	r = r.data(e.node[:]).number(e.start).flag(e.clean)
	for _, c := range e.counters {
		r = r.text(c.database).number(c.ceiling).number(c.last)
		if c.floor > 0 {
			r = r.number(c.floor)
		}
	}
	// Without floors, it is hashed as it was before there were any.
	if e.floor > 0 {
		r = r.number(e.floor)
	}
	return r.sum()
}

func hashRoles(roles *roles) uint64 {
	r := append(make(record, 0, 32+len(roles.encoded)), byte(recordRoles))
	return r.number(roles.setAt).data(roles.encoded).sum()
}

func hashCluster(id []byte) uint64 {
	var s recordSpace
	return s.begin(recordCluster).data(id).sum()
}

// hashFormat is 0 for the format that a cluster begins with.
func hashFormat(format uint32) uint64 {
	if format == firstFormat {
		return 0
	}
	var s recordSpace
	return s.begin(recordFormat).number(uint64(format)).sum()
}

// hashMembership is 0 for the index that a cluster begins with.
func hashMembership(index uint64) uint64 {
	if index == 0 {
		return 0
	}
	var s recordSpace
	return s.begin(recordMembership).number(index).sum()
}
