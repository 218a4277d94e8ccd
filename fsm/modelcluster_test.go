package fsm

import (
	"bytes"
	"slices"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// runCluster is run for operations on the cluster itself.
func (m *model) runCluster(op *raftlogv1.Operation) *raftlogv1.Result {
	switch o := op.GetOp().(type) {
	case *raftlogv1.Operation_Bootstrap:
		return m.bootstrap(o.Bootstrap)
	case *raftlogv1.Operation_MemberAdd:
		return m.add(o.MemberAdd.GetMember())
	case *raftlogv1.Operation_MemberAnnounce:
		return m.announce(o.MemberAnnounce.GetMember())
	case *raftlogv1.Operation_MemberPromote:
		return m.promote(o.MemberPromote.GetId())
	case *raftlogv1.Operation_MemberRemove:
		return m.remove(o.MemberRemove.GetTag())
	case *raftlogv1.Operation_WatcherSet:
		return m.setWatcher(o.WatcherSet)
	case *raftlogv1.Operation_EtagRaise:
		return m.etagRaise(o.EtagRaise)
	case *raftlogv1.Operation_EtagCleanStop:
		return m.etagStop(o.EtagCleanStop)
	}
	return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID)
}

func (m *model) bootstrap(o *raftlogv1.Bootstrap) *raftlogv1.Result {
	if m.formed && !bytes.Equal(o.GetClusterId(), testCluster) {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_FORMED)
	}
	if m.formed {
		return m.nothing()
	}
	m.formed = true
	for _, first := range o.GetMembers() {
		first.Voter = !first.GetWatcher()
		m.members = append(m.members, first)
	}
	return m.nothing()
}

func (m *model) byID(id []byte) *raftlogv1.Member {
	for _, have := range m.members {
		if bytes.Equal(have.GetId(), id) {
			return have
		}
	}
	return nil
}

func (m *model) byTag(tag string) *raftlogv1.Member {
	for _, have := range m.members {
		if have.GetTag() == tag {
			return have
		}
	}
	return nil
}

// add supports tags of one letter only.
func (m *model) add(o *raftlogv1.Member) *raftlogv1.Result {
	if have := m.byID(o.GetId()); have != nil {
		switch {
		case have.GetRemoved():
			return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER)
		case o.GetTag() != "" && o.GetTag() != have.GetTag():
			return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID)
		}
		return m.member(&raftlogv1.MemberResult{Member: have})
	}
	tag := o.GetTag()
	if tag == "" {
		for _, have := range m.members {
			tag = max(tag, have.GetTag())
		}
		tag = string(tag[0] + 1)
	}
	if m.byTag(tag) != nil {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN)
	}
	added := &raftlogv1.Member{
		Id: o.GetId(), Tag: tag, LogFormat: 1, Watcher: o.GetWatcher(),
		GrpcAddress: o.GetGrpcAddress(), RaftAddress: o.GetRaftAddress(), HttpAddress: o.GetHttpAddress(),
	}
	m.members = append(m.members, added)
	return m.member(&raftlogv1.MemberResult{Member: added})
}

func (m *model) announce(o *raftlogv1.Member) *raftlogv1.Result {
	have, owner := m.byID(o.GetId()), m.byTag(o.GetTag())
	switch {
	case owner != nil && owner != have:
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN)
	case have == nil || have.GetRemoved():
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER)
	case owner == nil:
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID)
	}
	have.GrpcAddress, have.RaftAddress, have.HttpAddress = o.GetGrpcAddress(), o.GetRaftAddress(), o.GetHttpAddress()
	m.sessions[string(o.GetId())] = &modelSession{number: m.index, results: map[uint64][]*raftlogv1.Result{}}
	e := m.etagsOf(o.GetId())
	e.start++
	clean := e.clean
	e.clean = false
	return m.member(&raftlogv1.MemberResult{Member: have, Session: m.index, Etags: &raftlogv1.EtagRecord{Start: e.start, Clean: clean}})
}

func (m *model) promote(id []byte) *raftlogv1.Result {
	have := m.byID(id)
	switch {
	case have == nil || have.GetRemoved():
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND)
	case have.GetWatcher():
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID)
	}
	have.Voter = true
	return m.member(&raftlogv1.MemberResult{Member: have})
}

func (m *model) remove(tag string) *raftlogv1.Result {
	have := m.byTag(tag)
	if have == nil {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND)
	}
	if m.isLastVoter(have) {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_LAST_VOTER)
	}
	if !have.GetRemoved() {
		have.Removed, have.Voter = true, false
		delete(m.sessions, string(have.GetId()))
		delete(m.etags, string(have.GetId()))
	}
	return m.member(&raftlogv1.MemberResult{Member: have})
}

func (m *model) isLastVoter(have *raftlogv1.Member) bool {
	others := slices.ContainsFunc(m.members, func(other *raftlogv1.Member) bool { return other != have && other.GetVoter() })
	return have.GetVoter() && !others
}

func (m *model) setWatcher(o *raftlogv1.WatcherSet) *raftlogv1.Result {
	have := m.byTag(o.GetTag())
	switch {
	case have == nil || have.GetRemoved():
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND)
	case have.GetWatcher() == o.GetWatcher():
	case o.GetWatcher() && m.isLastVoter(have):
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_LAST_VOTER)
	default:
		have.Watcher, have.Voter = o.GetWatcher(), false
	}
	return m.member(&raftlogv1.MemberResult{Member: have})
}

func (m *model) etagsOf(id []byte) *modelEtags {
	if m.etags[string(id)] == nil {
		m.etags[string(id)] = &modelEtags{ceiling: map[string]uint64{}, last: map[string]uint64{}}
	}
	return m.etags[string(id)]
}

// beyond returns those of the databases, in order, for which a node may not count etags too.
func (m *model) beyond(e *modelEtags, dbs []string) (beyond []string) {
	room := m.settings["max-databases"] - int64(len(e.ceiling))
	for _, db := range dbs {
		if _, known := e.ceiling[db]; known {
			continue
		}
		if room--; room < 0 {
			beyond = append(beyond, db)
		}
	}
	return beyond
}

func (m *model) etagResult(beyond []string) *raftlogv1.Result {
	r := m.nothing()
	if len(beyond) > 0 {
		r.Result = &raftlogv1.Result_Etag{Etag: &raftlogv1.EtagResult{Refused: beyond}}
	}
	return r
}

func (m *model) present(id []byte) bool {
	have := m.byID(id)
	return have != nil && !have.GetRemoved()
}

func (m *model) etagRaise(o *raftlogv1.EtagRaise) *raftlogv1.Result {
	if !m.present(o.GetNode()) {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER)
	}
	e := m.etagsOf(o.GetNode())
	var dbs []string
	for _, r := range o.GetRaise() {
		dbs = append(dbs, r.GetDatabase())
	}
	beyond := m.beyond(e, dbs)
	for _, r := range o.GetRaise() {
		if !slices.Contains(beyond, r.GetDatabase()) {
			e.ceiling[r.GetDatabase()] = max(e.ceiling[r.GetDatabase()], r.GetCeiling())
		}
	}
	return m.etagResult(beyond)
}

func (m *model) etagStop(o *raftlogv1.EtagCleanStop) *raftlogv1.Result {
	if !m.present(o.GetNode()) {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER)
	}
	e := m.etagsOf(o.GetNode())
	if o.GetStart() != e.start {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY)
	}
	var dbs []string
	for _, l := range o.GetLast() {
		dbs = append(dbs, l.GetDatabase())
	}
	beyond := m.beyond(e, dbs)
	e.clean = true
	for _, l := range o.GetLast() {
		if db := l.GetDatabase(); !slices.Contains(beyond, db) {
			e.last[db] = max(e.last[db], l.GetLast())
			e.ceiling[db] = max(e.ceiling[db], l.GetLast())
		}
	}
	return m.etagResult(beyond)
}
