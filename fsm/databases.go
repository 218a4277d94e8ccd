package fsm

import (
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/internal/statehash"
)

// databaseStore gives each database a number, in order of first use, so that the many names
// of a database do not each hold its name. A database is never removed, even when its
// last name is: its number would get a second meaning.
type databaseStore struct {
	// names is only appended to, so a copy of the slice is a snapshot.
	names   []string
	numbers map[string]uint32
	// used is by number. It is derived, as is nameBytes, the size of all names:
	// identities, hidden ones too, HiLo tags, claims, series, their keys and scopes.
	used      []databaseUse
	nameBytes int64
	limits    *settingStore
	hash      statehash.Sum
}

// databaseUse is how many names a database has, hidden identities included, and how
// many bytes they have.
type databaseUse struct{ names, bytes int64 }

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
	return uint32(len(d.names))
}

// use gives a database its number, if it is new. Handlers call it once nothing can be
// refused.
func (d *databaseStore) use(name []byte) {
	if _, ok := d.numbers[string(name)]; !ok {
		d.add(string(name))
	}
}

func (d *databaseStore) add(name string) {
	n := uint32(len(d.names))
	d.names = append(d.names, name)
	d.used = append(d.used, databaseUse{})
	d.numbers[name] = n
	d.hash.Add(hashDatabase(n, name))
}

// count counts an added name, or with -1 a removed name.
func (d *databaseStore) count(db uint32, name string, by int64) { d.grow(db, by, by*int64(len(name))) }

// grow counts names that are added, or below 0 removed.
func (d *databaseStore) grow(db uint32, names, bytes int64) {
	used := &d.used[db]
	used.names += names
	used.bytes += bytes
	d.nameBytes += bytes
}

// checkNew refuses a new name, tag or claimed id if it has an invisible character, or if
// room refuses it. A merge skips the former check.
func (d *databaseStore) checkNew(database []byte, limit settingID, used int, field, text string) *refusal {
	if r, found := docid.FirstInvisible(text); found {
		return invalid(field, "has the character %U, which cannot be seen: not allowed in new names", r)
	}
	if err := d.roomIn(d.numberOf(database), 1, len(text)); err != nil {
		return err
	}
	return d.room(database, limit, used, len(text))
}

// roomIn refuses new names if a limit of their database is reached.
func (d *databaseStore) roomIn(db uint32, names, bytes int) *refusal {
	var used databaseUse
	if int(db) < len(d.used) {
		used = d.used[db]
	}
	switch {
	case used.names+int64(names) > d.limits.value(settingMaxDatabaseNames):
		return d.limits.quota(settingMaxDatabaseNames)
	case used.bytes+int64(bytes) > d.limits.value(settingMaxDatabaseNameBytes):
		return d.limits.quota(settingMaxDatabaseNameBytes)
	}
	return nil
}

// room refuses a new name of the given size if a limit is reached: limit, of which used are in
// use, the limit of all names' bytes, or that of databases.
func (d *databaseStore) room(database []byte, limit settingID, used, size int) *refusal {
	if int64(used) >= d.limits.value(limit) {
		return d.limits.quota(limit)
	}
	return d.roomAtAll(database, size)
}

// roomFor refuses new names that no limit of their kind bounds, if another is reached. No name
// needs no room.
func (d *databaseStore) roomFor(database []byte, names, bytes int) *refusal {
	if names == 0 {
		return nil
	}
	if err := d.roomIn(d.numberOf(database), names, bytes); err != nil {
		return err
	}
	return d.roomAtAll(database, bytes)
}

// roomAtAll refuses new names of the given size if a limit of the whole cluster is reached.
func (d *databaseStore) roomAtAll(database []byte, size int) *refusal {
	_, known := d.numbers[string(database)]
	switch {
	case d.nameBytes+int64(size) > d.limits.value(settingMaxNameBytes):
		return d.limits.quota(settingMaxNameBytes)
	case !known && int64(len(d.names)) >= d.limits.value(settingMaxDatabases):
		return d.limits.quota(settingMaxDatabases)
	}
	return nil
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
	if int64(db) >= int64(len(d.names)) {
		return corrupt("%s in database %d of %d", field, db, len(d.names))
	}
	return restoreText(field, name, most)
}

// restoreText refuses a text that the state would never have let in.
func restoreText(field, text string, most int) error {
	if err := checkText(field, text, most); err != nil {
		return corrupt("%s %s", field, err.Detail)
	}
	return nil
}
