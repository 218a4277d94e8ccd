package fsm

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// maxAddressBytes is the longest address of a member: a host name has at most
	// 255 bytes.
	maxAddressBytes = 512
	// maxMembers bounds the members, including removed ones.
	maxMembers = 1 << 16
)

// memberStore has the present and the removed members. A Member is never changed, only
// replaced, so that a snapshot can share it.
type memberStore struct {
	byID map[nodeid.ID]*raftlogv1.Member
	// index is that of the log entry that last changed the membership, as clients see
	// it. Clients order topologies by it.
	index uint64
	// moved means that the current entry changes it. It is not part of the state.
	moved bool
	// hash is that of byID.
	hash statehash.Sum
}

// put stores a member, which is never changed afterwards.
func (s *memberStore) put(m *raftlogv1.Member) {
	id := nodeid.ID(m.GetId())
	old := s.byID[id]
	if old != nil {
		s.hash.Remove(hashMember(old))
	}
	s.moved = s.moved || publicOf(old) != publicOf(m)
	s.byID[id] = m
	s.hash.Add(hashMember(m))
}

func (s *memberStore) change(m *raftlogv1.Member, change func(*raftlogv1.Member)) *raftlogv1.Member {
	changed := proto.CloneOf(m)
	change(changed)
	s.put(changed)
	return changed
}

func (s *memberStore) remove(m *raftlogv1.Member) *raftlogv1.Member {
	return s.change(m, func(m *raftlogv1.Member) { m.Removed, m.Voter = true, false })
}

func (s *memberStore) byTag(tag string) *raftlogv1.Member {
	for _, m := range s.byID {
		if m.GetTag() == tag {
			return m
		}
	}
	return nil
}

func (s *memberStore) present(id []byte) (nodeid.ID, *raftlogv1.Member) {
	node, err := nodeid.FromBytes(id)
	m := s.byID[node]
	if err != nil || m == nil || m.GetRemoved() {
		return nodeid.ID{}, nil
	}
	return node, m
}

func (s *memberStore) node(id []byte) (nodeid.ID, *refusal) {
	node, m := s.present(id)
	if m == nil {
		return node, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER, "node", "the node is not a member")
	}
	return node, nil
}

func (s *memberStore) sorted() []*raftlogv1.Member {
	return slices.SortedFunc(maps.Values(s.byID), func(a, b *raftlogv1.Member) int {
		return docid.CompareNodeTags(a.GetTag(), b.GetTag())
	})
}

func (s *memberStore) voters() int {
	n := 0
	for _, m := range s.byID {
		if m.GetVoter() && !m.GetRemoved() {
			n++
		}
	}
	return n
}

// below returns a present member that does not know a format: of several that with the lowest
// tag, because the answer is part of the state.
func (s *memberStore) below(format uint32) *raftlogv1.Member {
	var lowest *raftlogv1.Member
	for _, m := range s.byID {
		if m.GetRemoved() || knownFormat(m) >= format {
			continue
		}
		if lowest == nil || docid.CompareNodeTags(m.GetTag(), lowest.GetTag()) < 0 {
			lowest = m
		}
	}
	return lowest
}

func (s *memberStore) records() records {
	return recordsOf(s.sorted(), func(m *raftlogv1.Member) records {
		return these(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Member{Member: m}})
	})
}

func (s *memberStore) restore(m *raftlogv1.Member) error {
	id, err := nodeid.FromBytes(m.GetId())
	if err != nil || s.byID[id] != nil || s.byTag(m.GetTag()) != nil {
		return corrupt("member %x with tag %q", m.GetId(), m.GetTag())
	}
	if len(s.byID) >= maxMembers {
		return corrupt("more than %d members", maxMembers)
	}
	s.put(m)
	return nil
}

func checkMember(m *raftlogv1.Member, format uint32) *refusal {
	if len(m.GetId()) != nodeid.Size {
		return invalid("id", "has %d bytes, must have %d", len(m.GetId()), nodeid.Size)
	}
	for _, address := range []string{m.GetGrpcAddress(), m.GetRaftAddress(), m.GetHttpAddress()} {
		if len(address) > maxAddressBytes {
			return invalid("address", "has %d bytes, at most %d are allowed", len(address), maxAddressBytes)
		}
	}
	if knownFormat(m) < format {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED, "log_format",
			"the cluster writes log format %d, the node knows formats up to %d: upgrade it", format, knownFormat(m))
	}
	return nil
}

// knownFormat returns the newest log format of a member; the first if the member states none.
func knownFormat(m *raftlogv1.Member) uint32 { return max(m.GetLogFormat(), firstFormat) }

func checkTag(tag string) *refusal {
	if err := docid.ValidateNodeTag(tag); err != nil {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID, "tag", "%v", err)
	}
	return nil
}

func newMember(m *raftlogv1.Member, tag string) *raftlogv1.Member {
	return &raftlogv1.Member{
		Id: bytes.Clone(m.GetId()), Tag: strings.Clone(tag),
		GrpcAddress: m.GetGrpcAddress(), RaftAddress: m.GetRaftAddress(), HttpAddress: m.GetHttpAddress(),
		Watcher: m.GetWatcher(), LogFormat: knownFormat(m),
	}
}

// memberAnnounce records a member's start: its addresses, and the formats it reads. It opens a
// session, and answers with the number of the start and how the previous start ended.
func (c *contents) memberAnnounce(dst []byte, now moment, _ op.Operation, announce *raftlogv1.MemberAnnounce) ([]byte, *refusal) {
	said := announce.GetMember()
	if err := checkMember(said, c.format); err != nil {
		return dst, err
	}
	node, have := c.members.present(said.GetId())
	if err := c.members.checkAnnounced(said, have); err != nil {
		return dst, err
	}
	m := c.members.change(have, func(m *raftlogv1.Member) {
		m.GrpcAddress, m.RaftAddress, m.HttpAddress = said.GetGrpcAddress(), said.GetRaftAddress(), said.GetHttpAddress()
		m.LogFormat = knownFormat(said)
		m.Starts, m.Process = said.GetStarts(), said.GetProcess()
	})
	c.sessions.open(node, now.index)
	before := c.etags.start(node)
	return op.AppendAnswer(dst, &raftlogv1.MemberResult{Member: m, Session: now.index, Etags: before}), nil
}

// checkAnnounced refuses a node that is not the present member of its tag; have is the present
// member of its id, or nil.
func (s *memberStore) checkAnnounced(said, have *raftlogv1.Member) *refusal {
	owner := s.byTag(said.GetTag())
	switch {
	case owner != nil && !bytes.Equal(owner.GetId(), said.GetId()):
		return tagTaken(owner)
	case have == nil:
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER, "id", "the node is not a member")
	case owner == nil:
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID, "tag", "the node is registered as %s", have.GetTag())
	case startedBefore(said, have):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SET_BACK, "starts",
			"is %d, and the node announced start %d already", said.GetStarts(), have.GetStarts())
	}
	return nil
}

// startedBefore reports whether an announcement is of an earlier start of the member: then its
// directory was set back, since each start counts itself first. A process may announce itself
// several times.
func startedBefore(said, have *raftlogv1.Member) bool {
	if have.GetStarts() == 0 || said.GetTrustData() {
		return false
	}
	return said.GetStarts() < have.GetStarts() || said.GetStarts() == have.GetStarts() && said.GetProcess() != have.GetProcess()
}

// memberPromote makes a member a voter; a voter is unchanged.
func (c *contents) memberPromote(dst []byte, _ moment, _ op.Operation, promote *raftlogv1.MemberPromote) ([]byte, *refusal) {
	_, m := c.members.present(promote.GetId())
	if m == nil {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, "id", "there is no such member")
	}
	if m.GetWatcher() {
		return dst, invalid("id", "%s is a watcher and does not vote", m.GetTag())
	}
	m = c.members.change(m, func(m *raftlogv1.Member) { m.Voter = true })
	return op.AppendAnswer(dst, &raftlogv1.MemberResult{Member: m}), nil
}

// watcherSet makes a member a watcher, or a voter again, which gets its vote as a new member does. An operation
// without effect is never refused.
func (c *contents) watcherSet(dst []byte, _ moment, _ op.Operation, set *raftlogv1.WatcherSet) ([]byte, *refusal) {
	m := c.members.byTag(set.GetTag())
	if m == nil || m.GetRemoved() {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, "tag", "there is no member %.200q", set.GetTag())
	}
	if m.GetWatcher() != set.GetWatcher() {
		if set.GetWatcher() {
			if refused := c.members.mayLose(m, set.GetMembershipIndex()); refused != nil {
				return dst, refused
			}
		}
		m = c.members.change(m, func(m *raftlogv1.Member) { m.Watcher, m.Voter = set.GetWatcher(), false })
	}
	return op.AppendAnswer(dst, &raftlogv1.MemberResult{Member: m}), nil
}

// mayLose refuses that a member goes, or votes no more: as the last voter, or if the members have changed since
// the leader judged it. Of two changes at once, each safe alone, the second must be judged again.
func (s *memberStore) mayLose(m *raftlogv1.Member, judged uint64) *refusal {
	switch {
	case judged != 0 && (judged != s.index || s.moved):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "tag", "the members have changed meanwhile")
	case m.GetVoter() && s.voters() == 1:
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_LAST_VOTER, "tag", "%s is the last member that votes", m.GetTag())
	}
	return nil
}

// memberRemove removes a member permanently: its tag stays taken, its id never comes
// back, its session ends and its etags are dropped. Removing a removed member changes
// nothing.
func (c *contents) memberRemove(dst []byte, _ moment, _ op.Operation, remove *raftlogv1.MemberRemove) ([]byte, *refusal) {
	m := c.members.byTag(remove.GetTag())
	if m == nil {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, "tag", "there is no member %.200q", remove.GetTag())
	}
	if !m.GetRemoved() {
		if refused := c.members.mayLose(m, remove.GetMembershipIndex()); refused != nil {
			return dst, refused
		}
		m = c.members.remove(m)
		c.sessions.drop(nodeid.ID(m.GetId()))
		c.etags.drop(nodeid.ID(m.GetId()))
	}
	return op.AppendAnswer(dst, &raftlogv1.MemberResult{Member: m}), nil
}
