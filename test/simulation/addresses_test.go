package simulation

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
)

// An address is a machine's host, or its host with a number after it has moved. A name is its
// host with nameEnd; it leads to the machine's address.
const nameEnd = ".name"

// dns is how questions for names are answered.
type dns uint8

const (
	resolves dns = iota
	refuses
	hangs
)

// hostOf is the machine that first had an address.
func hostOf(address string) string {
	host, _, _ := strings.Cut(address, ".")
	return host
}

// resolve looks a name up; an address is its own.
func (n *network) resolve(ctx context.Context, host string) (address string, err error) {
	for strings.HasSuffix(host, nameEnd) {
		n.mu.Lock()
		at, answer, changed := n.names[host], n.dns, n.changed
		n.mu.Unlock()
		switch answer {
		case resolves:
			return at, nil
		case refuses:
			return "", &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return host, nil
}

// lookupHost is a node's resolver.
func (n *network) lookupHost(ctx context.Context, host string) ([]string, error) {
	address, err := n.resolve(ctx, host)
	return []string{address}, err
}

// answerNames changes how questions for names are answered.
func (n *network) answerNames(how dns) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dns = how
	n.wakeAll()
}

// address is where the machine is.
func (s *server) address() string {
	s.world.network.mu.Lock()
	defer s.world.network.mu.Unlock()
	return s.world.network.names[s.host+nameEnd]
}

// advertised is what others have to find the machine.
func (s *server) advertised() string {
	if s.world.plan.named {
		return s.host + nameEnd
	}
	return s.address()
}

// moveTo gives the machine another address, while its node is down. Whoever dials the one that
// it had before waits, unless another machine has that.
func (n *network) moveTo(s *server, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.names[s.host+nameEnd]
	n.names[s.host+nameEnd] = address
	n.left[before] = !slices.Contains(slices.Collect(maps.Values(n.names)), before)
	delete(n.left, address)
}

// move has machines move until ctx ends: one, some, or all at once, while their nodes are down.
// Nodes that start have the new addresses in their lists of peers. Unless a majority stays,
// all start: one that stays may have to lead, and not know where the others are
// (docs/promises.md, "What is not promised").
func (n *nemesis) move(ctx context.Context) {
	for number := 1; ; number++ {
		if sleep(ctx, settles); ctx.Err() != nil {
			return
		}
		all := n.shuffled()
		nodes := all[:1+n.random.IntN(len(all))]
		if len(all)-len(nodes) > len(all)/2 {
			all = nodes
		}
		release := n.down(all)
		var addresses []string
		swap := len(nodes) > 1 && n.random.IntN(3) == 0
		for i, s := range nodes {
			at := fmt.Sprintf("%s.%d", s.host, number)
			if swap {
				at = nodes[(i+1)%len(nodes)].address()
			}
			addresses = append(addresses, at)
		}
		n.world.log.Info("fault", "kind", "moves", "nodes", hosts(nodes), "to", addresses)
		for i, s := range nodes {
			n.world.network.moveTo(s, addresses[i])
		}
		n.made++
		release()
	}
}

// silenceNames has questions for names refused or left unanswered until ctx ends, again and
// again, and meanwhile a machine be down, the leader's mostly, or all for a moment.
func (n *nemesis) silenceNames(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, settles)
		how := pick(n.random, refuses, hangs)
		lost, all := n.leaderOrAll(ctx)
		n.world.log.Info("fault", "kind", "names", "how", how, "down", hosts(lost))
		n.world.network.answerNames(how)
		n.made++
		release := n.down(lost)
		if all {
			release()
		}
		sleep(ctx, settles)
		n.world.network.answerNames(resolves)
		release()
	}
}

// leaderOrAll is one machine, the leader's mostly, or all.
func (n *nemesis) leaderOrAll(ctx context.Context) (machines []*server, all bool) {
	machines = n.shuffled()
	if n.random.IntN(4) == 0 {
		return machines, true
	}
	machines = machines[:1]
	if leader := n.leader(ctx); leader != nil && n.random.IntN(4) > 0 {
		machines[0] = leader
	}
	return machines, false
}

// shuffled are the machines in any order.
func (n *nemesis) shuffled() []*server {
	nodes := n.world.machines()
	n.random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// down keeps machines' nodes down until release is called.
func (n *nemesis) down(machines []*server) (release func()) {
	silent := n.random.IntN(2) == 0
	var all []func()
	for _, s := range machines {
		all = append(all, s.hold())
		s.current().kill(silent)
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}
