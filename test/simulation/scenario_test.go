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
	weather scenario = "weather" // disks and machines are good or bad, each for a while
)

// drawScenario draws few callers, and nothing beside the scenario that keeps a majority from
// being good for long.
func (p *plan) drawScenario(r *rand.Rand, s scenario) {
	p.scenario, p.nodes, p.length = s, pick(r, 2, 3, 3, 3, 3, 4, 5), pick[time.Duration](r, 20, 40)*time.Second
	p.clients, p.pause, p.jitter = 2, 2*time.Second, min(p.jitter, 10*time.Millisecond)
	p.faults, p.slow = nil, slowness{}
	p.churn, p.hungry, p.generator, p.late, p.series = false, false, false, false, false
	p.startWait = min(p.startWait, 5*time.Second)
}

// play makes the faults of the plan, or has its scenario happen, until ctx ends.
func (n *nemesis) play(ctx context.Context) {
	switch n.world.plan.scenario {
	case weather:
		n.weather(ctx)
	default:
		n.run(ctx)
	}
}
