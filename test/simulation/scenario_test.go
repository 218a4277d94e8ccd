package simulation

import (
	"context"
	"math/rand/v2"
	"time"
)

// scenario is what happens in the place of faults that are drawn one by one.
type scenario string

// The scenarios.
const (
	weather  scenario = "weather"  // disks and machines are good or bad, each for a while
	moves    scenario = "moves"    // machines move to other addresses
	names    scenario = "names"    // questions for names are not answered
	copies   scenario = "copies"   // older copies of disks, or empty ones
	removals scenario = "removals" // voters are removed, and leaders lost right after
	unread   scenario = "unread"   // nobody reads a node's log
	ports    scenario = "ports"    // firewalls close ports of machines, in one direction or both
)

// settles is how long nothing else happens, so that liveness is judged.
const settles = syncsToAnIdentity*250*time.Millisecond + 2*time.Second

// drawScenario draws few callers, and nothing beside the scenario that keeps a majority from
// being good for long.
func (p *plan) drawScenario(r *rand.Rand, s scenario) {
	p.scenario, p.nodes, p.length = s, pick(r, 2, 3, 3, 3, 3, 4, 5), pick[time.Duration](r, 20, 40)*time.Second
	p.clients, p.pause, p.jitter = 2, 2*time.Second, min(p.jitter, 10*time.Millisecond)
	p.faults, p.slow = nil, slowness{}
	p.churn, p.hungry, p.generator, p.late, p.series = false, false, false, false, false
	p.startWait = min(p.startWait, 5*time.Second)
	if s == weather {
		return
	}
	p.repeats, p.named = false, s == names || r.IntN(4) == 0
	p.diskLatency = min(p.diskLatency, 10*time.Millisecond)
	if s == copies {
		p.nodes, p.startWait, p.reserve, p.pause = pick(r, 3, 3, 3, 5), time.Hour, 0, 200*time.Millisecond
	}
	if s == removals {
		p.nodes, p.length = 4, 40*time.Second
	}
	if s == ports {
		p.nodes, p.length = pick(r, 3, 3, 5), 60*time.Second
	}
}

// play makes the faults of the plan, or has its scenario happen, until ctx ends.
func (n *nemesis) play(ctx context.Context) {
	switch n.world.plan.scenario {
	case weather:
		n.weather(ctx)
	case moves:
		n.move(ctx)
	case names:
		n.silenceNames(ctx)
	case copies:
		n.mixCopies(ctx)
	case removals:
		n.removeVoters(ctx)
	case unread:
		n.leaveLogs(ctx)
	case ports:
		n.closePorts(ctx)
	default:
		n.run(ctx)
	}
}
