package client

import (
	"maps"
	"slices"
	"strings"

	"github.com/idnode/idnode/client/idnodev1"
)

// SetEndpoints replaces [Config.Endpoints] while the client lives, as when a cluster moves: calls that begin
// later go to the new ones, or to the leader that is known. Calls under way go on, and so do HiLo and Snowflake
// handles. The endpoints must be of the same cluster; one of another gets no calls. The error is that of a
// Config, and nothing changes then, or ErrClosed. Config.Clusters keep theirs.
func (c *Client) SetEndpoints(endpoints []string) error {
	cfg := c.cfg
	cfg.Endpoints = endpoints
	if err := cfg.checkClusters(); err != nil {
		return configError(err)
	}
	return c.routers[0].setGiven(cfg.clusters()[0].Endpoints)
}

// setGiven replaces the endpoints. A node that stays keeps its connection, and a leader stays known.
func (r *router) setGiven(endpoints []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return closedError("the client is closed")
	}
	have := maps.Clone(r.learned)
	for _, n := range r.given {
		have[n.address] = n
	}
	given := make([]*node, 0, len(endpoints))
	for _, e := range endpoints {
		n := have[e]
		if n == nil {
			var err error
			if n, err = r.newNode(e); err != nil {
				for _, n := range given {
					if have[n.address] != n {
						_ = n.conn.Close() // It has carried no call.
					}
				}
				return configError(err)
			}
		}
		given = append(given, n)
	}
	old := r.given
	r.given, r.home = given, 0
	for _, n := range given {
		delete(r.learned, n.address)
	}
	for _, n := range old {
		switch {
		case slices.Contains(given, n):
			continue
		case n == r.leader:
			r.learned[n.address] = n
		default:
			r.retire(n)
		}
		delete(r.heard, n.address)
	}
	r.lookLocked(0, nil)
	return nil
}

// retire closes a node's connection once no try can be under way on it.
func (r *router) retire(n *node) {
	r.tasks.Go(func() {
		sleep(r.ctx, 2*r.cfg.TryTimeout)
		_ = n.conn.Close()
	})
}

// endpoints counts the different addresses of the endpoints. The caller has r.mu.
func (r *router) endpoints() int {
	different := make(map[string]bool)
	for _, n := range r.given {
		different[n.address] = true
	}
	return len(different)
}

// count returns the number of endpoints.
func (r *router) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.given)
}

// learnMembers learns the addresses of a cluster from its leader's status, and forgets those that it no
// longer has.
func (r *router) learnMembers(leader *node, s *idnodev1.GetStatusResponse) {
	named := map[string]bool{leader.address: true}
	for _, m := range s.GetMembers() {
		address, role := m.GetGrpcAddress(), m.GetRole()
		if checkEndpoint(address) == nil && role != idnodev1.Role_ROLE_WATCHER && role != idnodev1.Role_ROLE_REMOVED {
			named[address] = true
		}
	}
	r.mu.Lock()
	for address, n := range r.learned {
		if !named[address] && !r.closed {
			delete(r.learned, address)
			r.retire(n)
		}
	}
	for _, n := range r.given {
		delete(named, n.address)
	}
	r.mu.Unlock()
	for address := range named {
		r.learn(address)
	}
}

// askLearned asks the nodes that are no endpoints for the leader, after no endpoint has answered.
func (r *router) askLearned() (seen []view) {
	r.mu.Lock()
	nodes := slices.Collect(maps.Values(r.learned))
	r.mu.Unlock()
	views := make(chan view, len(nodes))
	for _, n := range nodes {
		r.tasks.Go(func() {
			s, _ := r.ask(n)
			views <- view{n, s}
		})
	}
	for range nodes {
		if v := <-views; v.status != nil {
			seen = append(seen, v)
			if leads(v.status) {
				break
			}
		}
	}
	return seen
}

// String says which endpoints the client has, which leader it knows, and whether it is closed. It has no
// secret.
func (c *Client) String() string {
	var texts []string
	for _, r := range c.routers {
		texts = append(texts, r.String())
	}
	text := "idnode client of " + strings.Join(texts, " and of ")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		text += ", closed"
	}
	return text
}

func (r *router) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var addresses []string
	for _, n := range r.given {
		addresses = append(addresses, n.address)
	}
	leader := "no known leader"
	if r.leader != nil {
		leader = "leader " + r.leader.address
	}
	return strings.Join(addresses, ",") + " with " + leader
}
