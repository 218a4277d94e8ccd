package config

import (
	"fmt"
	"os"
)

// hostname is what the machine is called; tests put another in its place.
var hostname = os.Hostname

// findTag takes the node's tag from TagByHost, if that is given. Such a list
// must name this machine: one that is missing by mistake would otherwise start
// as another node.
func (c *Config) findTag() error {
	if len(c.TagByHost) == 0 {
		return nil
	}
	host, err := hostname()
	if err != nil {
		return fmt.Errorf("tag-by-host: %w", err)
	}
	tag, named := c.TagByHost[host]
	switch {
	case named && c.Tag != "" && c.Tag != tag:
		return fmt.Errorf("tag-by-host: this machine, %s, has the tag %s, and tag says %s", host, tag, c.Tag)
	case named:
		c.Tag = tag
	case c.Tag == "":
		return fmt.Errorf("tag-by-host: this machine, %s, is not in it", host)
	}
	return nil
}

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
