package config

// chooseWay settles how a node comes into its cluster that was given both the
// first nodes and members to join: the first nodes find each other, and all others
// join. So one configuration serves nodes of both kinds.
func (c *Config) chooseWay() {
	if len(c.Peer) == 0 || len(c.Join) == 0 {
		return
	}
	if _, first := c.Peer[c.Tag]; first {
		c.Join = nil
	} else {
		c.Peer, c.SingleNode = nil, false
	}
}
