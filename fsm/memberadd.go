package fsm

import (
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// memberAdd registers a node that may then be added to Raft's configuration.
func (c *contents) memberAdd(dst []byte, now moment, o op.Operation, add *raftlogv1.MemberAdd) ([]byte, *refusal) {
	m := add.GetMember()
	if err := checkMember(m, c.format); err != nil {
		return dst, err
	}
	if have := c.members.byID[nodeid.ID(m.GetId())]; have != nil {
		return op.AppendAnswer(dst, &raftlogv1.MemberResult{Member: have}), checkAgain(have, m.GetTag())
	}
	if err := checkAdd(c.roles, &c.joinTokens, now, &o, add); err != nil {
		return dst, err
	}
	tag, err := c.members.tagFor(m.GetTag())
	if err != nil {
		return dst, err
	}
	if len(c.members.byID) >= maxMembers {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA, "", "there were %d members already", maxMembers)
	}
	added := newMember(m, tag)
	c.members.put(added)
	if hash := add.GetTokenHash(); len(hash) > 0 {
		c.joinTokens.drop(tokenHash(hash)) // A token admits one node.
	}
	return op.AppendAnswer(dst, &raftlogv1.MemberResult{Member: added}), nil
}

// checkAgain refuses a registered node that was removed, because the others have continued without
// it, and a node that asks for another tag than its own.
func checkAgain(have *raftlogv1.Member, tag string) *refusal {
	switch {
	case have.GetRemoved():
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER, "id",
			"the node was removed as %s; join with an empty data directory and a new tag", have.GetTag())
	case tag != "" && tag != have.GetTag():
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID, "tag",
			"the node is registered as %s", have.GetTag())
	}
	return nil
}

// JoinsAgain returns nil if a registered node may ask to join with a tag, where empty means its
// own, and otherwise the state's refusal.
func JoinsAgain(have *raftlogv1.Member, tag string) *raftlogv1.Refusal {
	return checkAgain(have, tag).message()
}

// TagTaken is the state's refusal of a new node that asks for the tag of another member.
func TagTaken(owner *raftlogv1.Member) *raftlogv1.Refusal { return tagTaken(owner).message() }

// tagFor returns the tag of a new member: the wanted tag, or the next tag above all that were
// ever given.
//
// Invariant: no tag is given twice, even after its member was removed.
func (s *memberStore) tagFor(wanted string) (string, *refusal) {
	if wanted == "" {
		return s.nextTag()
	}
	if err := checkTag(wanted); err != nil {
		return "", err
	}
	if owner := s.byTag(wanted); owner != nil {
		return "", tagTaken(owner)
	}
	return wanted, nil
}

func (s *memberStore) nextTag() (string, *refusal) {
	highest := ""
	for _, m := range s.byID {
		if docid.CompareNodeTags(m.GetTag(), highest) > 0 {
			highest = m.GetTag()
		}
	}
	tag, err := docid.NextNodeTag(highest)
	if err != nil {
		return "", refuse(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID, "tag",
			"there is no tag above %s; name one", highest)
	}
	return tag, nil
}

func tagTaken(owner *raftlogv1.Member) *refusal {
	why := "the tag %[1]s belongs to another node; if that lost its data, remove it (idnode cluster remove %[1]s), and join under a new tag"
	if owner.GetRemoved() {
		why = "%s was removed, and its tag is never given again; join under a new tag"
	}
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN, "tag", why, owner.GetTag())
}

// publicMember is the part of a member that clients see; empty for a removed or unknown member.
type publicMember struct {
	tag, address   string
	watcher, voter bool
}

func publicOf(m *raftlogv1.Member) publicMember {
	if m == nil || m.GetRemoved() {
		return publicMember{}
	}
	return publicMember{tag: m.GetTag(), address: m.GetHttpAddress(), watcher: m.GetWatcher(), voter: m.GetVoter()}
}

// settle ends an entry that may have changed the membership.
//
// Invariant: it rises with each change, so that of two topologies, from any nodes, the
// one with the higher index is newer.
func (s *memberStore) settle(index uint64) {
	if s.moved {
		s.index = max(index, s.index+1)
	}
	s.moved = false
}

func (s *memberStore) indexRecord() records {
	if s.index == 0 {
		return these()
	}
	return these(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_MembershipIndex{MembershipIndex: s.index}})
}

// restoreIndex restores the index of the newest change, which a snapshot has at most
// once.
func (s *memberStore) restoreIndex(index uint64) error {
	if index == 0 || s.index != 0 {
		return corrupt("a change of the membership at %d after one at %d", index, s.index)
	}
	s.index = index
	return nil
}
