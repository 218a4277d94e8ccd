package fsm

import "github.com/idnode/idnode/fsm/table"

// hashFromScratch computes the hash of everything that is stored.
func hashFromScratch(c *contents) uint64 {
	var h stateHash
	for i, name := range c.databases.names {
		h.add(hashDatabase(uint32(i), name))
	}
	for _, hidden := range []bool{false, true} {
		c.identityTable(hidden).Ascend(0, "", func(e table.Entry[identityValue]) bool {
			h.add(hashIdentity(e.Database, e.Name, int64(e.Value), hidden))
			return true
		})
	}
	c.hilos.Ascend(0, "", func(e table.Entry[packedHiLo]) bool {
		h.add(hashHiLo(e.Database, e.Name, e.Value))
		return true
	})
	c.claims.Ascend(0, "", func(e table.Entry[claimValue]) bool {
		h.add(hashClaim(claimItem{db: e.Database, id: e.Name}))
		return true
	})
	for _, m := range c.members {
		h.add(hashMember(m))
	}
	for origin, s := range c.sessions {
		h.add(hashSession(origin, s))
		for _, r := range s.results {
			h.add(hashSessionResult(origin, s.number, r.sequence, r.results))
		}
	}
	for node, e := range c.etags {
		h.add(hashEtags(node, e))
	}
	for position := c.requests.first; position < c.requests.next; position++ {
		h.add(c.requestHash(position))
	}
	h.add(hashRequestFloor(c.requests.floor))
	for id := range settingCount {
		if c.settings.changed(id) {
			h.add(hashSetting(id, c.settings.value(id)))
		}
	}
	if c.formed() {
		h.add(hashCluster(c.clusterID))
	}
	h.add(hashFormat(c.format))
	h.add(hashFloor(c.floor))
	if c.roles != nil {
		h.add(hashRoles(c.roles))
	}
	return uint64(h)
}
