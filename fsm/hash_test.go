package fsm

// hashFromScratch computes the hash of everything that is stored.
func hashFromScratch(c *contents) uint64 {
	var h stateHash
	for i, name := range c.databases.names {
		h.add(hashDatabase(uint32(i), name))
	}
	for _, item := range c.identities.Items() {
		h.add(hashIdentity(item, false))
	}
	for _, item := range c.hidden.Items() {
		h.add(hashIdentity(item, true))
	}
	for _, item := range c.hilos.Items() {
		h.add(hashHiLo(item))
	}
	for _, item := range c.claims.Items() {
		h.add(hashClaim(item))
	}
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
	return uint64(h)
}
