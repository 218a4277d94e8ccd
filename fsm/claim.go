package fsm

import (
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// claimValue is true if an identity stepped over the claimed id. Where it is false and
// the identity has passed the id, a seed, a merge or a floor may have moved the identity,
// and the id may have been issued elsewhere.
type claimValue bool

type claimItem struct {
	id string
	db uint32
}

// numberedItem is a claim of the form name + separator + decimal.
type numberedItem struct {
	name      string
	value     int64
	separator rune
	db        uint32
}

func (a numberedItem) less(b numberedItem) bool {
	switch {
	case a.db != b.db:
		return a.db < b.db
	case a.name != b.name:
		return a.name < b.name
	case a.separator != b.separator:
		return a.separator < b.separator
	}
	return a.value < b.value
}

func (a numberedItem) item() claimItem {
	return claimItem{db: a.db, id: a.name + string(a.separator) + strconv.FormatInt(a.value, 10)}
}

// sameIdentity reports whether one identity under one separator would step over both claims.
func (a numberedItem) sameIdentity(b numberedItem) bool {
	return a.db == b.db && a.separator == b.separator && a.name == b.name
}

// numbered returns the item's form as name, separator and value, if it has it.
func (a claimItem) numbered() (numberedItem, bool) {
	name, separator, value, ok := docid.SplitNumbered(a.id)
	if !ok {
		name, separator, value, ok = splitSeeded(a.id)
	}
	if !ok {
		return numberedItem{}, false
	}
	r, _ := utf8.DecodeRuneInString(separator)
	return numberedItem{db: a.db, name: name, separator: r, value: value}, true
}

// splitSeeded is docid.SplitNumbered for a value at or below 0, which an identity
// has only after a seed by force.
func splitSeeded(id string) (name, separator string, value int64, ok bool) {
	if minus := strings.LastIndexByte(id, '-'); minus >= 0 {
		digits := id[minus+1:]
		name, separator, value, ok = docid.SplitNumbered(id[:minus] + digits)
		if ok && strconv.FormatInt(value, 10) == digits {
			return name, separator, -value, true
		}
	}
	head, zero := strings.CutSuffix(id, "0")
	name, separator, value, ok = docid.SplitNumbered(head + "1")
	return name, separator, 0, ok && zero && value == 1
}

// claimStore has the claimed ids, and those that were released.
type claimStore struct {
	claimed nameTable[claimValue]
	// released are ids that were claimed and can be claimed again, though an identity
	// has passed them.
	released *table.Table[struct{}]
	// stepped counts the claims that an identity stepped over. It is derived.
	stepped int
	// numbered holds claimed and released ids of the form name + separator + decimal, by name: the
	// ids that an identity steps over. It is derived.
	numbered *btree.BTreeG[numberedItem]
	// full is derived from it, and no part of the state: it only saves time.
	full fullIdentities
	// hash is that of released.
	hash statehash.Sum
}

func newClaims(databases *databaseStore) claimStore {
	return claimStore{
		claimed: nameTable[claimValue]{
			Table: table.New[claimValue](), databases: databases,
			limit: settingMaxClaims, what: "claim", field: "id", record: hashClaim,
		},
		released: table.New[struct{}](),
		numbered: btree.NewBTreeGOptions(numberedItem.less, btree.Options{NoLocks: true}), // State has a lock.
		full:     fullIdentities{},
	}
}

func (s *claimStore) find(item claimItem) inTable[claimValue] {
	return s.claimed.find(item.db, item.id)
}

// isFree reports whether a released id can be claimed again. An id up to the floor may have
// been issued elsewhere.
func (s *claimStore) isFree(item claimItem, value int64, floor floor) bool {
	return s.hasReleased(item) && (floor.names == 0 || value > floor.names)
}

func (s *claimStore) hasReleased(item claimItem) bool {
	_, ok := s.released.Find(item.db, item.id)
	return ok
}

// numberedFrom yields the claimed values of an identity under a separator, ascending, from the
// item's value on.
func (s *claimStore) numberedFrom(from numberedItem) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		s.numbered.Ascend(from, func(item numberedItem) bool {
			return item.sameIdentity(from) && yield(item.value)
		})
	}
}

// claimedFrom returns the claimed values of an identity under a separator, as
// identity.Counter.Next wants them; nil if there are no such claims at all.
func (s *claimStore) claimedFrom(f foundIdentity, separator []byte) func(from int64) iter.Seq[int64] {
	if s.numbered.Len() == 0 {
		return nil
	}
	sep, _ := utf8.DecodeRune(separator)
	return func(from int64) iter.Seq[int64] {
		return s.numberedFrom(numberedItem{db: f.db, name: f.name, separator: sep, value: from})
	}
}

// claim stores a claim that does not exist. An identity stepped over it if it was
// released.
func (s *claimStore) claim(item claimItem) { s.add(item, s.dropReleased(item)) }

// add adds a claim of an id that is not released.
func (s *claimStore) add(item claimItem, steppedOver claimValue) {
	s.claimed.put(inTable[claimValue]{db: item.db, name: item.id}, steppedOver)
	s.derive(item, steppedOver)
}

// derive adds the derived data of a new claim.
func (s *claimStore) derive(item claimItem, steppedOver claimValue) {
	if steppedOver {
		s.stepped++
	}
	if n, ok := item.numbered(); ok {
		n.name = strings.Clone(n.name) // It is part of a message that should not live on.
		s.numbered.Set(n)
	}
}

// stepOver marks the claims of an identity under a separator, from the item's value up to last:
// a Next stepped over them.
func (s *claimStore) stepOver(from numberedItem, last int64) {
	for value := range s.numberedFrom(from) {
		if value > last {
			return
		}
		from.value = value
		if p := s.find(from.item()); p.exists && !bool(p.value) {
			s.setSteppedOver(p, true)
		}
	}
}

func (s *claimStore) setSteppedOver(p inTable[claimValue], steppedOver claimValue) {
	s.claimed.put(p, steppedOver)
	if steppedOver {
		s.stepped++
	} else {
		s.stepped--
	}
}

func (s *claimStore) release(item claimItem) bool {
	p := s.find(item)
	if !p.exists {
		return false
	}
	s.claimed.remove(p)
	if n, ok := item.numbered(); ok {
		s.numbered.Delete(n)
		s.full.forget(n)
	}
	if p.value {
		s.stepped--
		s.addReleased(item)
	}
	return true
}

func (s *claimStore) records() records {
	m := &raftlogv1.ClaimRecord{}
	record := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Claim{Claim: m}}
	return recordsIn(s.claimed.Table, func(e table.Entry[claimValue]) *raftlogv1.SnapshotRecord {
		m.Database, m.Id, m.SteppedOver = e.Database, e.Name, bool(e.Value)
		return record
	})
}

func (s *claimStore) restore(m *raftlogv1.ClaimRecord) error {
	steppedOver := claimValue(m.GetSteppedOver())
	if err := s.claimed.restore(m.GetDatabase(), m.GetId(), docid.MaxIDBytes, steppedOver); err != nil {
		return err
	}
	s.derive(claimItem{db: m.GetDatabase(), id: m.GetId()}, steppedOver)
	return nil
}

// claim claims an id: the first claim wins.
func (c *contents) claim(dst []byte, _ moment, o op.Operation, claim *raftlogv1.Claim) ([]byte, *refusal) {
	if err := checkText("id", claim.GetId(), docid.MaxIDBytes); err != nil {
		return dst, err
	}
	item := claimItem{db: c.databases.numberOf(o.Database), id: claim.GetId()}
	if tag, ok := docid.NodeTagOf(item.id); ok && c.members.byTag(tag) != nil {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED, "id",
			"%.200q has the form of the ids that node %s issues: a number, a dash and its tag", item.id, tag)
	}
	if err := c.claims.checkFree(item, &c.identities, c.floor); err != nil {
		return dst, err
	}
	if err := c.claims.claimed.checkNew(o.Database, c.claims.find(item)); err != nil {
		return dst, err
	}
	c.databases.use(o.Database)
	c.claims.claim(item)
	return dst, nil
}

// checkFree refuses an id that is claimed, or that an identity has issued. The state does
// not know under which separators an identity was used, so a value counts as issued under
// each of them. Deleting an identity does not take back issued values.
func (s *claimStore) checkFree(item claimItem, identities *identityStore, floor floor) *refusal {
	if s.find(item).exists {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED, "id", "%.200q is claimed already", item.id)
	}
	n, ok := item.numbered()
	if !ok || s.isFree(item, n.value, floor) {
		return nil
	}
	// An unknown identity may have issued values up to the floor, if there is one.
	if f := identities.find(n.db, n.name, floor); (f.exists || f.last > 0) && n.value <= f.last {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED, "id",
			"%.200q was issued", item.id) // The caller may not read the identity's value.
	}
	return nil
}

func (c *contents) release(dst []byte, _ moment, o op.Operation, release *raftlogv1.Release) ([]byte, *refusal) {
	if err := checkText("id", release.GetId(), docid.MaxIDBytes); err != nil {
		return dst, err
	}
	item := claimItem{db: c.databases.numberOf(o.Database), id: release.GetId()}
	if !c.claims.release(item) {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CLAIM_NOT_FOUND, "id", "%.200q is not claimed", release.GetId())
	}
	return dst, nil
}
