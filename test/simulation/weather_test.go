package simulation

import (
	"context"
	"slices"
	"time"
)

// spellTimes are how many times the limit of liveness a spell of weather lasts.
const spellTimes = 1.2

// weather has one spell after the other until ctx ends: for a while each disk has its speed,
// some machines are in trouble, and it began with a loss or without.
func (n *nemesis) weather(ctx context.Context) {
	nodes := n.world.founders()
	sleep(ctx, looks) // All machines have a process by then.
	for ctx.Err() == nil {
		speeds := n.drawSpeeds(len(nodes))
		for i, s := range nodes {
			s.disk.change(func(f *diskFaults) { f.latency, f.twice = speeds[i], true })
		}
		inTrouble := n.drawTroubled(ctx)
		n.world.log.Info("weather", "disks", speeds, "trouble", hosts(inTrouble))
		var over []func()
		for _, s := range inTrouble {
			over = append(over, n.trouble(s))
		}
		if n.random.IntN(4) == 0 {
			for _, s := range nodes {
				s.current().kill(false)
			}
		}
		n.made++
		sleep(ctx, spellOf(speeds, len(inTrouble)))
		for _, end := range over {
			end()
		}
	}
}

// drawSpeeds draws how long a sync takes on each disk: as long on all, or each as it likes;
// and on some, now and then, for so long that it counts as slow.
func (n *nemesis) drawSpeeds(disks int) []time.Duration {
	var all []time.Duration
	same := n.random.IntN(2) == 0
	for range disks {
		speed := pick[time.Duration](n.random, 1, 20, 80, 120, 180, 250, 250) * time.Millisecond
		if same && len(all) > 0 {
			speed = all[0]
		}
		all = append(all, speed)
	}
	if n.random.IntN(3) == 0 {
		for range 1 + n.random.IntN(disks) {
			all[n.random.IntN(disks)] = pick[time.Duration](n.random, 450, 700) * time.Millisecond
		}
	}
	return all
}

// drawTroubled draws machines that will be in trouble, half of the time the leader's first:
// no majority, mostly.
func (n *nemesis) drawTroubled(ctx context.Context) []*server {
	nodes := n.shuffled()
	if leader := slices.Index(nodes, n.leader(ctx)); leader >= 0 && n.random.IntN(2) == 0 {
		nodes[0], nodes[leader] = nodes[leader], nodes[0]
	}
	return nodes[:n.random.IntN((len(nodes)-1)/2+2)%len(nodes)]
}

// trouble has a machine lose its process or its links, and returns what ends that.
func (n *nemesis) trouble(s *server) (end func()) {
	if n.random.IntN(3) == 0 {
		edges := n.around(func(h string) bool { return h == s.host })
		n.world.quorums.setCuts(edges, true)
		return func() { n.world.quorums.setCuts(edges, false) }
	}
	release := s.hold()
	s.current().kill(n.random.IntN(2) == 0)
	if n.random.IntN(4) == 0 {
		release() // It is back at once.
	}
	return release
}

// spellOf is how long a spell lasts: long enough for a judgement, if there can be one.
func spellOf(disks []time.Duration, inTrouble int) time.Duration {
	sorted := slices.Sorted(slices.Values(disks))
	most, syncs := sorted[len(disks)/2], syncsToAnIdentity
	for _, speed := range speeds {
		if sorted[len(disks)-1] > speed {
			syncs = syncsBesideSlow
		}
		if most <= speed && inTrouble <= (len(disks)-1)/2 {
			return time.Duration(spellTimes * float64(syncs) * float64(speed))
		}
	}
	return 3 * time.Second
}
