package fsm

import (
	"bytes"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// mergeCluster merges the cluster part of another state, such as a backup's: a tag that
// was given there stays given here.
func (c *contents) mergeCluster(dst []byte, _ moment, _ op.Operation, m *raftlogv1.MergeCluster) ([]byte, *refusal) {
	if m.GetFloor() < 0 {
		return dst, invalid("floor", "is %d, must not be negative", m.GetFloor())
	}
	from, err := parseFloorCursor(m.GetResume())
	if err != nil {
		return dst, err
	}
	plan := newClusterPlan(c)
	for _, given := range m.GetTags() {
		if err := plan.tag(m, given); err != nil {
			return dst, err
		}
	}
	if len(c.members.byID)+len(plan.retired) > maxMembers {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA, "", "there were %d members already", maxMembers)
	}
	c.floor.names = max(c.floor.names, m.GetFloor())
	c.floor.incomplete = c.floor.incomplete || m.GetFloor() > 0 || m.GetIncomplete()
	plan.carryOut()
	result := &raftlogv1.MergeClusterResult{Floor: c.floor.names, Given: int64(len(plan.retired)), Shared: plan.shared}
	if m.GetFloor() > 0 {
		result.Resume = raiseCounters(&c.identities, &c.hilos, m.GetFloor(), from)
		c.hilos.tellAll(m.GetFloor())
	}
	return op.AppendAnswer(dst, result), nil
}

// clusterPlan is the planned changes of a MergeCluster.
type clusterPlan struct {
	members *memberStore
	etags   *etagStore
	limits  *settingStore
	// retired are tags that were not given here, as removed members.
	retired []*raftlogv1.Member
	// shared are tags of present members that others were given, in order.
	shared []string
	// records are new etag records of present members, and raised the ceilings that were given.
	records map[nodeid.ID]*nodeEtags
	raised  map[nodeid.ID][]*raftlogv1.EtagCeiling
}

func newClusterPlan(c *contents) clusterPlan {
	return clusterPlan{
		members: &c.members, etags: &c.etags, limits: &c.settings,
		records: map[nodeid.ID]*nodeEtags{}, raised: map[nodeid.ID][]*raftlogv1.EtagCeiling{},
	}
}

func (p *clusterPlan) tag(m *raftlogv1.MergeCluster, given *raftlogv1.GivenTag) *refusal {
	id, err := nodeid.FromBytes(given.GetId())
	if err != nil {
		return invalid("id", "has %d bytes, must have %d", len(given.GetId()), nodeid.Size)
	}
	if err := checkTag(given.GetTag()); err != nil {
		return err
	}
	owner, known := p.members.byTag(given.GetTag()), p.members.byID[id]
	switch {
	case known != nil && known.GetTag() != given.GetTag():
		return invalid("tag", "is %s, and the node of this id is registered as %s", given.GetTag(), known.GetTag())
	case owner == nil:
		return p.retire(given)
	case owner.GetRemoved(), bytes.Equal(owner.GetId(), given.GetId()):
		return nil
	case !m.GetShareTags():
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN, "tags",
			"the tag %s, which a member has, was given to another node before", given.GetTag())
	}
	return p.share(m, given, nodeid.ID(owner.GetId()))
}

// retire plans a removed member under the tag. A tag is listed several times if its node's etags do
// not fit in one entry of the list.
func (p *clusterPlan) retire(given *raftlogv1.GivenTag) *refusal {
	for _, r := range p.retired {
		switch sameTag, sameID := r.GetTag() == given.GetTag(), bytes.Equal(r.GetId(), given.GetId()); {
		case sameTag && sameID:
			return nil
		case sameTag || sameID:
			return invalid("tags", "two have the same id, or the tag %s", given.GetTag())
		}
	}
	member := newMember(&raftlogv1.Member{Id: given.GetId()}, given.GetTag())
	member.Removed = true
	p.retired = append(p.retired, member)
	return nil
}

// share plans that the etags of a present member continue above those of the
// other node with its tag.
func (p *clusterPlan) share(m *raftlogv1.MergeCluster, given *raftlogv1.GivenTag, node nodeid.ID) *refusal {
	e := p.records[node]
	if e == nil {
		e = p.etags.of(node).copy()
		p.records[node] = e
		p.shared = append(p.shared, given.GetTag())
	}
	beyond, err := e.raise(given.GetEtags(), p.limits)
	if err != nil {
		return err
	}
	if len(beyond) > 0 {
		return p.limits.quota(settingMaxDatabases)
	}
	e.head = withCeilings(e.head, nil)
	e.head.Floor = max(e.head.GetFloor(), m.GetEtagFloor())
	p.raised[node] = append(p.raised[node], given.GetEtags()...)
	return nil
}

func (p *clusterPlan) carryOut() {
	for _, m := range p.retired {
		p.members.put(m)
	}
	for _, tag := range p.shared {
		node := nodeid.ID(p.members.byTag(tag).GetId())
		p.etags.put(p.records[node])
		p.etags.tell(p.records[node].head, p.raised[node])
	}
}
