package fsm

import (
	"math"
	"slices"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// MaxMerge bounds the names of one Merge.
const MaxMerge = 4096

// merge raises counters and adds claims. Nothing is lowered, so merges are idempotent and
// commute.
func (c *contents) merge(dst []byte, _ moment, o op.Operation, m *raftlogv1.Merge) ([]byte, *refusal) {
	if err := checkMerge(m); err != nil {
		return dst, err
	}
	merging := newMerging(c, c.databases.numberOf(o.Database))
	added := merging.growth(m)
	if err := c.databases.roomForMerge(o.Database, added, added); err != nil {
		return dst, err
	}
	if added.names() > 0 {
		c.databases.use(o.Database)
	}
	merging.all(m)
	return op.AppendAnswer(dst, &merging.result), nil
}

// merging is a merge, carried out or only planned.
type merging struct {
	identities *identityStore
	hilos      *hiloStore
	claims     *claimStore
	floor      floor
	db         uint32
	result     raftlogv1.MergeResult
	// changed, if set, is called for each change, which is then not made.
	changed func(MergeChange)
}

func newMerging(c *contents, db uint32) *merging {
	return &merging{identities: &c.identities, hilos: &c.hilos, claims: &c.claims, floor: c.floor, db: db}
}

// all merges checked values. Claims are first: in the merged state they existed before
// its identities reached them.
func (m *merging) all(given *raftlogv1.Merge) {
	for _, id := range given.GetClaims() {
		m.claim(claimItem{db: m.db, id: id})
	}
	for _, i := range given.GetIdentities() {
		m.identity(i)
	}
	for _, h := range given.GetHilos() {
		m.hilo(h)
	}
}

// claim adds a claim. It is added even if an identity may have issued the id: then two
// callers may have it already, and a third must not get it.
func (m *merging) claim(item claimItem) {
	if m.claims.find(item).exists {
		m.result.Unchanged++
		return
	}
	if m.issued(item) {
		m.result.Conflicts = append(m.result.Conflicts, item.id)
	}
	m.result.Claimed++
	if m.changed != nil {
		m.changed(MergeChange{Claim: item.id, Created: true})
		return
	}
	m.claims.claim(item)
}

// issued reports whether a known identity has passed the id, unless it stepped over it.
func (m *merging) issued(item claimItem) bool {
	n, ok := item.numbered()
	if !ok || m.claims.isFree(item, n.value, m.floor) {
		return false
	}
	f := m.identities.find(n.db, n.name, m.floor)
	return f.exists && n.value <= f.last
}

// identity raises an identity. A shown identity stays shown.
func (m *merging) identity(given *raftlogv1.MergeIdentity) {
	found := m.identities.find(m.db, given.GetName(), m.floor)
	if m.changed == nil {
		m.claims.invalidateSteppedOver(found, math.MinInt64, given.GetLast()) // Also where the identity was higher already.
	}
	now := identity.Counter{
		Last:   max(found.last, given.GetLast()),
		Hidden: given.GetHidden() && (found.hidden || !found.exists),
	}
	if !m.count(found.exists, found.counter() != now) {
		return
	}
	if m.changed != nil {
		m.changed(MergeChange{Identity: found.name, Created: !found.exists, Before: found.last, After: now.Last})
		return
	}
	m.identities.put(found, now)
}

func (m *merging) hilo(given *raftlogv1.MergeHiLo) {
	found := m.hilos.find(m.db, given.GetTag(), m.floor)
	now := raisedHiLo(found.counter, given.GetMax(), given.GetPeak())
	raised := found.counter.Max != now.Max || found.counter.Peak != now.Peak
	if m.changed == nil {
		m.hilos.tell(m.db, found.name, given.GetMax()) // Also where Max was higher already.
	}
	if !m.count(found.exists, raised) && len(now.Outstanding) == len(found.counter.Outstanding) {
		return
	}
	switch {
	case m.changed == nil:
		m.hilos.put(found, now)
	case raised || !found.exists:
		m.changed(MergeChange{HiLo: found.name, Created: !found.exists, Before: found.counter.Max, After: now.Max})
	}
}

// raisedHiLo is a counter raised to a Max and a Peak.
//
// Invariant: the numbers up to highest stay taken. A range that begins at or below it
// cannot come back: the counter would fall below it, even if Max is higher.
func raisedHiLo(counter hilo.Counter, highest, peak int64) hilo.Counter {
	now := hilo.Counter{Max: max(counter.Max, highest)}
	now.Peak = max(counter.Peak, peak, now.Max)
	first := slices.IndexFunc(counter.Outstanding, func(o hilo.Outstanding) bool { return o.Low > highest })
	if first >= 0 {
		now.Outstanding = counter.Outstanding[first:]
	}
	return now
}

// count counts the outcome of a counter, and reports whether it changes.
func (m *merging) count(exists, changed bool) bool {
	switch {
	case !exists:
		m.result.Created++
	case changed:
		m.result.Raised++
	default:
		m.result.Unchanged++
	}
	return !exists || changed
}

func checkMerge(m *raftlogv1.Merge) *refusal {
	if n := len(m.GetIdentities()) + len(m.GetHilos()) + len(m.GetClaims()); n > MaxMerge {
		return invalid("", "there are %d names, at most %d are allowed", n, MaxMerge)
	}
	for _, i := range m.GetIdentities() {
		if err := checkText("name", i.GetName(), docid.MaxNameBytes); err != nil {
			return err
		}
	}
	for _, h := range m.GetHilos() {
		if err := checkText("tag", h.GetTag(), docid.MaxNameBytes); err != nil {
			return err
		}
		if h.GetMax() < 0 || h.GetPeak() < 0 {
			return invalid("max", "is %d, must not be negative", min(h.GetMax(), h.GetPeak()))
		}
	}
	for _, id := range m.GetClaims() {
		if err := checkText("id", id, docid.MaxIDBytes); err != nil {
			return err
		}
	}
	return nil
}

// Growth is how many databases and names are new, and how many bytes the names have.
type Growth struct{ Databases, Identities, HiLos, Claims, Bytes int64 }

func (g Growth) names() int64 { return g.Identities + g.HiLos + g.Claims }

// Plus returns the sum.
func (g Growth) Plus(other Growth) Growth {
	return Growth{
		g.Databases + other.Databases, g.Identities + other.Identities, g.HiLos + other.HiLos, g.Claims + other.Claims,
		g.Bytes + other.Bytes,
	}
}

// growth is the growth by a merge. A repeated name counts once.
func (m *merging) growth(given *raftlogv1.Merge) (g Growth) {
	type added struct {
		kind *int64
		name string
	}
	seen := make(map[added]bool, len(given.GetIdentities())+len(given.GetHilos())+len(given.GetClaims()))
	want := func(kind *int64, exists bool, name string) {
		if fresh := (added{kind, name}); !exists && !seen[fresh] {
			seen[fresh] = true
			*kind, g.Bytes = *kind+1, g.Bytes+int64(len(name))
		}
	}
	for _, i := range given.GetIdentities() {
		want(&g.Identities, m.identities.find(m.db, i.GetName(), m.floor).exists, i.GetName())
	}
	for _, h := range given.GetHilos() {
		want(&g.HiLos, m.hilos.find(m.db, h.GetTag(), m.floor).exists, h.GetTag())
	}
	for _, id := range given.GetClaims() {
		want(&g.Claims, m.claims.claimed.find(m.db, id).exists, id)
	}
	if g.names() > 0 && !m.claims.claimed.databases.hasNames(m.db) {
		g.Databases = 1
	}
	return g
}

// roomForMerge refuses a merge if a limit is reached: here is the growth of its database, and all that of the
// cluster. A merge without new names always fits.
func (d *databaseStore) roomForMerge(database []byte, here, all Growth) *refusal {
	if all.names() == 0 {
		return nil
	}
	if full := d.roomInside(database, here.names(), here.Bytes); full != nil {
		return full
	}
	return d.roomOverall(all.Databases, all.Bytes, wanted{settingMaxIdentities, all.Identities}, wanted{settingMaxHiLos, all.HiLos},
		wanted{settingMaxClaims, all.Claims})
}

// MergeChange is a change that a Merge would make.
type MergeChange struct {
	// Identity, HiLo or Claim is the name, tag or id; the others are empty.
	Identity, HiLo, Claim string
	// Created means that it does not exist yet.
	Created bool
	// Before and After are the counter's values.
	Before, After int64
}

// PreviewMerge returns the changes of a Merge, and its result. Names are folded.
func (s *State) PreviewMerge(database string, m *raftlogv1.Merge) ([]MergeChange, *raftlogv1.MergeResult) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var changes []MergeChange
	preview := newMerging(s.contents, s.contents.databases.numberOf([]byte(database)))
	preview.changed = func(c MergeChange) { changes = append(changes, c) }
	preview.all(m)
	return changes, &preview.result
}

// JudgeMerge returns the growth by a Merge after others whose growth of its database is here, and of the cluster
// all; and a refusal if a limit would be reached. Names are folded.
func (s *State) JudgeMerge(database string, m *raftlogv1.Merge, here, all Growth) (Growth, *raftlogv1.Refusal) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	databases := &s.contents.databases
	added := newMerging(s.contents, databases.numberOf([]byte(database))).growth(m)
	if here.Databases > 0 {
		added.Databases = 0 // It is counted already.
	}
	return added, databases.roomForMerge([]byte(database), here.Plus(added), all.Plus(added)).message()
}
