package fsm

import (
	"math"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/table"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// maxReleased bounds the remembered released ids that an identity had stepped over while they were
// claimed. Beyond it such ids count as issued: they can no longer be claimed.
const maxReleased = 1 << 16

// addReleased records an id that was released after an identity had stepped over it: it is
// unused, so it can be claimed again. Identities keep stepping over it, even when they are set
// back, until it is claimed.
//
// Invariant: an id is claimed or released, or neither; each released id has a number.
func (s *claimStore) addReleased(item claimItem) {
	n, ok := item.numbered()
	if !ok || s.released.Len() >= maxReleased {
		return
	}
	s.released.Insert(table.Entry[struct{}]{Database: item.db, Name: item.id})
	s.claimed.databases.hold(item.db, 1)
	s.numbered.Set(n)
	s.hash.Add(hashReleased(item))
}

// dropReleased forgets an id that is claimed again, and reports whether it was released:
// the identity has stepped over the new claim, too.
func (s *claimStore) dropReleased(item claimItem) claimValue {
	ref, ok := s.released.Find(item.db, item.id)
	if !ok {
		return false
	}
	s.released.Delete(ref)
	s.claimed.databases.hold(item.db, -1)
	s.hash.Remove(hashReleased(item))
	return true
}

// forgetReleased forgets a released id.
func (s *claimStore) forgetReleased(item claimItem) {
	s.dropReleased(item)
	n, _ := item.numbered()
	s.numbered.Delete(n)
	s.full.forget(n)
}

// invalidateSteppedOver forgets that an identity stepped over its ids from one value to another,
// under all separators: after a merge or a seed they may have been issued elsewhere.
func (s *claimStore) invalidateSteppedOver(f foundIdentity, from, to int64) {
	if s.stepped == 0 && s.released.Len() == 0 {
		return
	}
	var passed []numberedItem
	// From separator to separator: a name may have millions of claims beyond to.
	for separator := s.separatorFrom(f, 0); separator >= 0; separator = s.separatorFrom(f, separator+1) {
		n := numberedItem{db: f.db, name: f.name, separator: separator, value: from}
		for n.value = range s.numberedFrom(n) {
			if n.value > to {
				break
			}
			passed = append(passed, n)
		}
	}
	for _, n := range passed {
		s.mayBeIssued(n)
	}
}

// separatorFrom returns the first separator, from the given one on, with numbered ids of a name; a
// negative number without any.
func (s *claimStore) separatorFrom(f foundIdentity, from rune) (separator rune) {
	separator = -1
	s.numbered.Ascend(numberedItem{db: f.db, name: f.name, separator: from, value: math.MinInt64}, func(n numberedItem) bool {
		if n.db == f.db && n.name == f.name {
			separator = n.separator
		}
		return false
	})
	return separator
}

// mayBeIssued takes its mark from a claim, or forgets a released id.
func (s *claimStore) mayBeIssued(n numberedItem) {
	if p := s.find(n.item()); p.exists {
		if p.value {
			s.setSteppedOver(p, false)
		}
		return
	}
	s.forgetReleased(n.item())
}

func (s *claimStore) releasedRecords() records {
	return recordsIn(s.released, func(e table.Entry[struct{}]) *raftlogv1.SnapshotRecord {
		m := &raftlogv1.ClaimRecord{Database: e.Database, Id: e.Name}
		return &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Released{Released: m}}
	})
}

// restoreReleased restores a released id of a snapshot.
func (s *claimStore) restoreReleased(m *raftlogv1.ClaimRecord) error {
	if err := s.claimed.databases.restoreName(m.GetDatabase(), "released id", m.GetId(), docid.MaxIDBytes); err != nil {
		return err
	}
	item := claimItem{db: m.GetDatabase(), id: m.GetId()}
	_, numbered := item.numbered()
	if s.find(item).exists || s.hasReleased(item) || !numbered || m.GetSteppedOver() || s.released.Len() >= maxReleased {
		return corrupt("released id %q", item.id)
	}
	s.addReleased(item)
	return nil
}
