package fsm

import (
	"strings"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/identity"
)

// MaxPage bounds the names of one listing: reading delays Apply.
const MaxPage = 10_000

// NamedIdentity is an identity in a list.
type NamedIdentity struct {
	// Name is the folded name.
	Name string
	identity.Counter
}

// NamedHiLo is a HiLo counter in a list.
type NamedHiLo struct {
	// Tag is the folded tag.
	Tag string
	hilo.Counter
}

// Identity returns an identity by its folded name; false if it does not exist, or is hidden.
func (s *State) Identity(db, name string) (identity.Counter, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	n, ok := c.databases.number(db)
	if !ok {
		return identity.Counter{}, false
	}
	last, ok := c.identities.shown.Get(n, name)
	return identity.Counter{Last: int64(last)}, ok
}

// Identities returns a page of the identities whose folded name begins with prefix and follows
// after, in the order of the names' bytes, at most limit and MaxPage. Hidden identities are left
// out.
func (s *State) Identities(db, prefix, after string, limit int) []NamedIdentity {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	return list(c, c.identities.shown.Table, db, page{prefix, after, limit}, func(e table.Entry[identityValue]) NamedIdentity {
		return NamedIdentity{Name: e.Name, Counter: identity.Counter{Last: int64(e.Value)}}
	})
}

// HiLo returns a HiLo counter by its folded tag; false if it does not exist. With a floor every
// tag has a counter: a client that sets it must expect that.
func (s *State) HiLo(db, tag string) (hilo.Counter, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	n, ok := c.databases.number(db)
	if !ok || len(tag) > docid.MaxNameBytes {
		return c.floor.hilo(), c.floor.names > 0
	}
	found := c.hilos.find(n, tag, c.floor)
	return found.counter, found.exists || c.floor.names > 0
}

// HiLos returns a page of the HiLo counters, as Identities does.
func (s *State) HiLos(db, prefix, after string, limit int) []NamedHiLo {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	return list(c, c.hilos.counters.Table, db, page{prefix, after, limit}, func(e table.Entry[packedHiLo]) NamedHiLo {
		return NamedHiLo{Tag: e.Name, Counter: e.Value.counter()}
	})
}

// Claims returns a page of the claimed ids, as Identities does.
func (s *State) Claims(db, prefix, after string, limit int) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	return list(c, c.claims.claimed.Table, db, page{prefix, after, limit}, func(e table.Entry[claimValue]) string { return e.Name })
}

type page struct {
	prefix, after string
	limit         int
}

// start returns the name the page begins at or after. It is cut to a length that
// no name has: the order among names stays the same.
func (p page) start() string {
	start := max(p.prefix, p.after)
	return start[:min(len(start), docid.MaxIDBytes+1)]
}

// list returns a page of a table; show converts an entry for the caller.
func list[V, R any](c *contents, t *table.Table[V], db string, p page, show func(table.Entry[V]) R) []R {
	n, ok := c.databases.number(db)
	limit := min(p.limit, MaxPage)
	if !ok || limit <= 0 {
		return nil
	}
	var found []R
	for e := range t.Of(n, p.start()) {
		if e.Name > p.after && strings.HasPrefix(e.Name, p.prefix) {
			found = append(found, show(e))
		}
		// Names with the prefix are next to each other, from the prefix on.
		if len(found) == limit || !strings.HasPrefix(e.Name, p.prefix) {
			break
		}
	}
	return found
}

// Setting is a setting and its value.
type Setting struct {
	SettingInfo
	// Value is the value in force.
	Value int64
}

// Settings returns all settings, in a fixed order.
func (s *State) Settings() []Setting {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]Setting, settingCount)
	for id, info := range settingTable {
		all[id] = Setting{SettingInfo: info, Value: s.contents.settings.values[id]}
	}
	return all
}

// Setting returns a setting by its key; false if the key is unknown.
func (s *State) Setting(key string) (Setting, bool) {
	id, ok := settingByKey(key)
	if !ok {
		return Setting{}, false
	}
	return s.Settings()[id], true
}

// Databases returns all databases that have names, in order of first use, except those that took the number of another.
func (s *State) Databases() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []string
	s.contents.databases.names.Scan(func(n uint32, name string) bool {
		if s.contents.databases.used[n].counts() {
			all = append(all, name)
		}
		return true
	})
	return all
}

// Counts is how much there is in a state.
type Counts struct {
	// Databases counts those that have names.
	Databases int
	// Identities counts those that are not hidden, HiddenIdentities the others.
	Identities, HiddenIdentities int
	// HiLos and Claims count HiLo counters and claims.
	HiLos, Claims int
	// Series counts series of document numbers, SeriesKeys the keys that they know.
	Series     int
	SeriesKeys int64
	// Pools counts pools, Workers their workers, and WorkersInUse those in use when a holder of the
	// pool last called.
	Pools, Workers, WorkersInUse int
	// NameBytes is the size of the names of all of these.
	NameBytes int64
	// Requests counts remembered request ids. RequestsForgotten is the newest log index at which a
	// forgotten request id was applied.
	Requests, RequestsForgotten uint64
	// Members counts present members, RemovedMembers the others.
	Members, RemovedMembers int
	// Sessions counts open sessions, SessionResults the groups in them whose
	// results are kept.
	Sessions, SessionResults int
}

// Counts returns how much there is in the state.
func (s *State) Counts() Counts {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	counts := Counts{
		Databases: int(c.databases.counting()), Identities: c.identities.shown.Len(), HiddenIdentities: c.identities.hidden.Len(),
		HiLos: c.hilos.counters.Len(), Claims: c.claims.claimed.Len(), NameBytes: c.databases.nameBytes,
		Series: c.series.byName.Len(), SeriesKeys: c.series.parts,
		Requests: c.requests.size, RequestsForgotten: max(c.requests.floor, c.requests.newestFloor), Sessions: len(c.sessions.byOrigin),
	}
	for i := range c.pools.all {
		counts.Pools++
		counts.Workers += i.is.Layout().Workers()
		counts.WorkersInUse += i.is.Leased()
	}
	for _, m := range c.members.byID {
		if m.GetRemoved() {
			counts.RemovedMembers++
		} else {
			counts.Members++
		}
	}
	for _, session := range c.sessions.byOrigin {
		counts.SessionResults += len(session.results)
	}
	return counts
}

// Format returns the log format that leaders write.
func (s *State) Format() uint32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contents.format
}
