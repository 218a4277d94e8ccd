package fsm

import (
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm/op"
)

// databases gives each database a number, in order of first use, so that the many names
// of a database do not each hold its name. A database is never removed, even when its
// last name is: its number would get a second meaning.
type databases struct {
	// names is only appended to, so a copy of the slice is a snapshot.
	names   []string
	numbers map[string]uint32
	// used is by number, and derived.
	used []databaseUse
}

// databaseUse is how many names a database has, hidden identities included, and how
// many bytes they have.
type databaseUse struct{ names, bytes int64 }

// number returns a database's number, false if it was never used.
func (d *databases) number(name string) (uint32, bool) {
	n, ok := d.numbers[name]
	return n, ok
}

// databaseNumber returns the number of the operation's database; a new database
// has the number it would get.
func (c *contents) databaseNumber(o *op.Operation) uint32 {
	if n, ok := c.databases.numbers[string(o.Database)]; ok {
		return n
	}
	return uint32(len(c.databases.names))
}

// useDatabase gives the operation's database its number, if it is new. Handlers call it
// once nothing can be refused.
func (c *contents) useDatabase(o *op.Operation) {
	if _, ok := c.databases.numbers[string(o.Database)]; !ok {
		c.addDatabase(string(o.Database))
	}
}

// addDatabase gives a new database the next number.
func (c *contents) addDatabase(name string) {
	n := uint32(len(c.databases.names))
	c.databases.names = append(c.databases.names, name)
	c.databases.used = append(c.databases.used, databaseUse{})
	c.databases.numbers[name] = n
	c.stored.add(hashDatabase(n, name))
}

// countName counts a name that is added, or with -1 one that is removed.
func (c *contents) countName(db uint32, name string, by int64) {
	used, bytes := &c.databases.used[db], by*int64(len(name))
	used.names += by
	used.bytes += bytes
	c.nameBytes += bytes
}

// checkNew refuses a new name, tag or claimed id if it has a control character, or if
// room refuses it. A merge skips the former check: names from before that rule can be
// restored.
func (c *contents) checkNew(o *op.Operation, limit settingID, used int, field, text string) *refusal {
	if r, found := docid.FirstControl(text); found && c.strict() {
		return invalid(field, "has the character %U, which controls how text is shown; new ones may have none such", r)
	}
	if err := c.databaseRoom(c.databaseNumber(o), 1, len(text)); err != nil {
		return err
	}
	return c.room(o, limit, used, len(text))
}

// databaseRoom refuses new names if a limit of their database is reached.
func (c *contents) databaseRoom(db uint32, names, bytes int) *refusal {
	var used databaseUse
	if int(db) < len(c.databases.used) {
		used = c.databases.used[db]
	}
	switch {
	case used.names+int64(names) > c.settings.value(settingMaxDatabaseNames):
		return c.settings.quota(settingMaxDatabaseNames)
	case used.bytes+int64(bytes) > c.settings.value(settingMaxDatabaseNameBytes):
		return c.settings.quota(settingMaxDatabaseNameBytes)
	}
	return nil
}

// room refuses a new name of the given size if a limit is reached: the named
// one, of which there are used already, that of all names' bytes, or that of
// databases.
func (c *contents) room(o *op.Operation, limit settingID, used, size int) *refusal {
	_, known := c.databases.numbers[string(o.Database)]
	switch {
	case int64(used) >= c.settings.value(limit):
		return c.settings.quota(limit)
	case c.nameBytes+int64(size) > c.settings.value(settingMaxNameBytes):
		return c.settings.quota(settingMaxNameBytes)
	case !known && int64(len(c.databases.names)) >= c.settings.value(settingMaxDatabases):
		return c.settings.quota(settingMaxDatabases)
	}
	return nil
}
