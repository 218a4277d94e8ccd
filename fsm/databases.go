package fsm

import (
	"github.com/tidwall/btree"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// databaseStore numbers the databases in order of first use, so that names hold a number in place of
// their database's name. A database without names does not count; at the limit of databases a new
// one takes its number.
type databaseStore struct {
	// names is by number. A snapshot has a copy.
	names   btree.Map[uint32, string]
	numbers map[string]uint32
	// used is by number, and unused has the numbers of databases without names. Both are derived, as is nameBytes, the
	// size of all names: identities, hidden ones too, HiLo tags, claims, series, their keys and scopes.
	used      []databaseUse
	unused    btree.Map[uint32, struct{}]
	nameBytes int64
	// kinds counts the names of each kind, by its limit. It is derived.
	kinds  [settingCount]int64
	limits *settingStore
	// replaced is called after a number has got another database.
	replaced func()
	hash     statehash.Sum
}

// databaseUse counts a database's names, hidden identities included, their bytes, and its remembered
// released ids.
type databaseUse struct{ names, bytes, released int64 }

func (u databaseUse) size() int64 { return u.names + u.released }

func (u databaseUse) counts() bool { return u.size() > 0 }

// hasNames reports whether the database that has a number, or would get it, counts.
func (d *databaseStore) hasNames(n uint32) bool { return int(n) < len(d.used) && d.used[n].counts() }

// counting returns the number of databases with names.
func (d *databaseStore) counting() int64 { return int64(d.names.Len() - d.unused.Len()) }

// number returns a database's number, false if it was never used.
func (d *databaseStore) number(name string) (uint32, bool) {
	n, ok := d.numbers[name]
	return n, ok
}

// numberOf returns a database's number, or for a new database the number it would get.
func (d *databaseStore) numberOf(name []byte) uint32 {
	if n, ok := d.numbers[string(name)]; ok {
		return n
	}
	return d.next()
}

// use numbers a new database. Handlers call it once they can no longer refuse.
func (d *databaseStore) use(name []byte) {
	if _, ok := d.numbers[string(name)]; ok {
		return
	}
	if n := d.next(); int(n) < d.names.Len() {
		d.replace(n, string(name))
	} else {
		d.add(string(name))
	}
}

func (d *databaseStore) add(name string) {
	n := uint32(d.names.Len())
	d.used = append(d.used, databaseUse{})
	d.unused.Set(n, struct{}{})
	d.put(n, name)
}

// next is the number of the next new database: at the limit of databases, the lowest number of a database
// without names.
func (d *databaseStore) next() uint32 {
	if int64(d.names.Len()) >= d.limits.value(settingMaxDatabases) {
		if n, _, ok := d.unused.Min(); ok {
			return n
		}
	}
	return uint32(d.names.Len())
}

// replace assigns a number to another database.
func (d *databaseStore) replace(n uint32, name string) {
	before, _ := d.names.Get(n)
	delete(d.numbers, before)
	d.hash.Remove(hashDatabase(n, before))
	d.put(n, name)
	d.replaced()
}

func (d *databaseStore) put(n uint32, name string) {
	d.names.Set(n, name)
	d.numbers[name] = n
	d.hash.Add(hashDatabase(n, name))
}

// count counts an added name of a kind, which is that of its limit, or with -1 a removed name.
func (d *databaseStore) count(kind settingID, db uint32, name string, by int64) {
	d.kinds[kind] += by
	d.grow(db, by, by*int64(len(name)))
}

// grow counts names that are added, or below 0 removed.
func (d *databaseStore) grow(db uint32, names, bytes int64) {
	d.change(db, databaseUse{names: names, bytes: bytes})
	d.nameBytes += bytes
}

// hold counts released ids that are remembered, or below 0 forgotten.
func (d *databaseStore) hold(db uint32, released int64) {
	d.change(db, databaseUse{released: released})
}

func (d *databaseStore) change(db uint32, by databaseUse) {
	used := &d.used[db]
	before := used.counts()
	used.names += by.names
	used.bytes += by.bytes
	used.released += by.released
	switch after := used.counts(); {
	case after && !before:
		d.unused.Delete(db)
	case before && !after:
		d.unused.Set(db, struct{}{})
	}
}

// checkNew refuses a new name, tag or claimed id if it has an invisible character, or if
// there is no room. A merge skips the former check.
func (d *databaseStore) checkNew(database []byte, kind settingID, field, text string) *refusal {
	if r, found := docid.FirstInvisible(text); found {
		return invalid(field, "has the character %U, which cannot be seen: not allowed in new names", r)
	}
	return d.roomFor(database, 1, len(text), wanted{kind, 1})
}

// wanted is the number of new names of a kind, named by its limit.
type wanted struct {
	kind  settingID
	names int64
}

// roomFor refuses new names beyond the limit of their database, of a kind, or of the whole cluster. Zero names
// always fit.
func (d *databaseStore) roomFor(database []byte, names, bytes int, kinds ...wanted) *refusal {
	if names == 0 {
		return nil
	}
	databases := int64(0)
	if !d.hasNames(d.numberOf(database)) {
		databases = 1
	}
	if full := d.roomInside(database, int64(names), int64(bytes)); full != nil {
		return full
	}
	return d.roomOverall(databases, int64(bytes), kinds...)
}

// roomInside refuses new names if a limit of their database is reached.
func (d *databaseStore) roomInside(database []byte, names, bytes int64) *refusal {
	var used databaseUse
	if n, known := d.number(string(database)); known {
		used = d.used[n]
	}
	switch {
	case used.names+names > d.limits.value(settingMaxDatabaseNames):
		return d.limits.quota(settingMaxDatabaseNames)
	case used.bytes+bytes > d.limits.value(settingMaxDatabaseNameBytes):
		return d.limits.quota(settingMaxDatabaseNameBytes)
	}
	return nil
}

// roomOverall refuses new names and databases if a limit of a kind, or of the whole cluster, is reached.
func (d *databaseStore) roomOverall(databases, bytes int64, kinds ...wanted) *refusal {
	for _, w := range kinds {
		if w.names > 0 && d.kinds[w.kind]+w.names > d.limits.value(w.kind) {
			return d.limits.quota(w.kind)
		}
	}
	switch {
	case d.nameBytes+bytes > d.limits.value(settingMaxNameBytes):
		return d.limits.quota(settingMaxNameBytes)
	case databases > 0 && d.counting()+databases > d.limits.value(settingMaxDatabases):
		return d.limits.quota(settingMaxDatabases)
	}
	return nil
}

func (d *databaseStore) records() records {
	names := d.names.Copy()
	return func(yield func(*raftlogv1.SnapshotRecord) bool) {
		names.Scan(func(_ uint32, name string) bool {
			return yield(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Database{Database: name}})
		})
	}
}

func (d *databaseStore) restore(name string) error {
	if _, ok := d.number(name); ok {
		return corrupt("database %q twice", name)
	}
	d.add(name)
	return restoreText("database", name, docid.MaxDatabaseBytes)
}

// restoreName refuses a name whose database is not in an earlier record.
func (d *databaseStore) restoreName(db uint32, field, name string, most int) error {
	if int64(db) >= int64(d.names.Len()) {
		return corrupt("%s in database %d of %d", field, db, d.names.Len())
	}
	return restoreText(field, name, most)
}

// restoreText refuses a text that the state would never have accepted.
func restoreText(field, text string, most int) error {
	if err := checkText(field, text, most); err != nil {
		return corrupt("%s %s", field, err.Detail)
	}
	return nil
}
