package fsm

import (
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// restoreText refuses a text that the state would never have let in.
func restoreText(field, text string, most int) error {
	if err := checkText(field, text, most); err != nil {
		return corrupt("%s %s", field, err.detail)
	}
	return nil
}

// restoreName refuses a name whose database is not in an earlier record.
func (c *contents) restoreName(db uint32, field, name string, most int) error {
	if int64(db) >= int64(len(c.databases.names)) {
		return corrupt("%s in database %d of %d", field, db, len(c.databases.names))
	}
	return restoreText(field, name, most)
}

func (c *contents) restoreDatabase(name string) error {
	if _, ok := c.databases.number(name); ok {
		return corrupt("database %q twice", name)
	}
	c.addDatabase(name)
	return restoreText("database", name, docid.MaxDatabaseBytes)
}

func (c *contents) restoreIdentity(m *raftlogv1.IdentityRecord) error {
	if err := c.restoreName(m.GetDatabase(), "identity", m.GetName(), docid.MaxNameBytes); err != nil {
		return err
	}
	if c.findIdentity(m.GetDatabase(), m.GetName()).exists {
		return corrupt("identity %q twice", m.GetName())
	}
	c.addIdentity(m.GetDatabase(), m.GetName(), identity.Counter{Last: m.GetLast(), Hidden: m.GetHidden()})
	return nil
}

func (c *contents) restoreHiLo(m *raftlogv1.HiLoRecord) error {
	if err := c.restoreName(m.GetDatabase(), "HiLo tag", m.GetTag(), docid.MaxNameBytes); err != nil {
		return err
	}
	if len(m.GetOutstanding()) > hilo.MaxOutstanding {
		return corrupt("HiLo tag %q with %d ranges", m.GetTag(), len(m.GetOutstanding()))
	}
	counter := hilo.Counter{Max: m.GetMax(), Peak: m.GetPeak()}
	for _, o := range m.GetOutstanding() {
		r := hilo.Range{Low: o.GetLow(), High: o.GetHigh()}
		counter.Outstanding = append(counter.Outstanding, hilo.Outstanding{Range: r, Token: o.GetToken()})
	}
	if _, twice := c.hilos.Find(m.GetDatabase(), m.GetTag()); twice {
		return corrupt("HiLo tag %q twice", m.GetTag())
	}
	c.addHiLo(m.GetDatabase(), m.GetTag(), counter)
	return nil
}

func (c *contents) restoreClaim(m *raftlogv1.ClaimRecord) error {
	if err := c.restoreName(m.GetDatabase(), "claim", m.GetId(), docid.MaxIDBytes); err != nil {
		return err
	}
	item := claimItem{db: m.GetDatabase(), id: m.GetId()}
	if _, twice := c.claims.Find(item.db, item.id); twice {
		return corrupt("claim %q twice", item.id)
	}
	if m.GetSteppedOver() && !c.strict() {
		return corrupt("claim %q with a mark of a later format", item.id)
	}
	c.addClaim(item, claimValue(m.GetSteppedOver()))
	return nil
}

func (c *contents) restoreReleased(m *raftlogv1.ClaimRecord) error {
	if err := c.restoreName(m.GetDatabase(), "released id", m.GetId(), docid.MaxIDBytes); err != nil {
		return err
	}
	item := claimItem{db: m.GetDatabase(), id: m.GetId()}
	_, claimed := c.claims.Find(item.db, item.id)
	_, twice := c.released.Find(item.db, item.id)
	_, numbered := item.numbered()
	if claimed || twice || !numbered || m.GetSteppedOver() || !c.strict() || c.released.Len() >= maxReleased {
		return corrupt("released id %q", item.id)
	}
	c.addReleased(item)
	return nil
}
