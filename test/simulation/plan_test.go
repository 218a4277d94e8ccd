package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// plan is what a seed draws before anything happens: swarm testing, where each
// seed has some kinds of faults and not others, because faults of one kind can
// keep those of another from showing anything.
type plan struct {
	seed  uint64
	nodes int
	// length is how long there are faults and traffic.
	length time.Duration
	// clients make calls, with a pause of at most this length in between.
	clients int
	pause   time.Duration
	// faults are the kinds there are.
	faults []fault
	// calm is how long there is no new fault, on average.
	calm time.Duration

	latency, jitter, diskLatency     time.Duration
	snapshotInterval                 time.Duration
	snapshotThreshold, trailingLogs  uint64
	etagBlock                        uint64
	startWait, leaderWait, heartbeat time.Duration

	// window is how many request ids are remembered; 0 is as many as by default.
	window int64
	// churn lets members come and go, generator lets callers share a generator of a
	// HiLo client, and wal has the nodes keep their log in one of this repository's
	// own, on a simulated disk.
	churn, generator, wal bool
	// hungry has callers that take nothing but server-side ids, all the time.
	hungry bool
	slow   slowness
	// crowd is the most databases there may be, of which callers use more; 0 is as many
	// as by default.
	crowd int64
	// rewinds has whole disks set back to older copies, live with the memory of their process.
	rewinds, live bool
	// imports has callers merge counters into those there are.
	imports bool
	// reserve is for how long nodes keep HiLo numbers in reserve; 0 is not at all.
	reserve time.Duration
	// late has first tries come after their retries were forgotten.
	late bool
	// series has callers take numbers for documents.
	series bool
	// snowflakes has callers lease workers, with clocks that differ and jump.
	snowflakes bool
	// repeats has callers of the Go client repeat what failed until they know.
	repeats bool
	// scenario has something happen in the place of the faults, with so much time that
	// liveness is judged meanwhile. named has names in the place of addresses.
	scenario scenario
	named    bool
	// http has nodes serve HTTP too.
	http bool
	// segmentBytes is the size of the segments of this repository's own log: so small
	// that a seed has many, which begin at any entry.
	segmentBytes int64
}

// fault is a kind of fault.
type fault string

// The kinds of faults.
const (
	cutOff          fault = "cut off"    // one node, in both directions
	partition       fault = "partition"  // into two halves
	oneWay          fault = "one way"    // between two nodes
	deafness        fault = "deafness"   // answers to a client are lost
	resets          fault = "resets"     // connections between two hosts break
	crashes         fault = "crashes"    // of a process
	powerLoss       fault = "power loss" // a crash without any notice
	torn            fault = "torn"       // a crash between two writes
	stalls          fault = "stalls"     // of a disk
	ioErrors        fault = "io errors"  // one write fails
	restarts        fault = "restarts"   // clean ones
	leaderTransfers fault = "leader transfers"
	blackouts       fault = "blackouts" // all nodes crash at once
	setBack         fault = "set back"  // a node's etags on disk, to an older copy
	orphans         fault = "orphans"   // entries on the disk of a leader alone, which crashes
)

var allFaults = []fault{
	cutOff, partition, oneWay, deafness, resets, crashes, powerLoss, torn, stalls, ioErrors, restarts, leaderTransfers, blackouts,
}

func drawPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{
		seed:              seed,
		nodes:             pick(r, 1, 3, 3, 3, 3, 3, 5),
		length:            pick[time.Duration](r, 2, 4, 6) * time.Second,
		clients:           pick(r, 2, 4, 8),
		pause:             pick[time.Duration](r, 20, 50, 150) * time.Millisecond,
		calm:              pick[time.Duration](r, 100, 300, 800) * time.Millisecond,
		latency:           pick[time.Duration](r, 50, 200, 1000) * time.Microsecond,
		jitter:            pick[time.Duration](r, 0, 0, 1, 10, 60) * time.Millisecond,
		diskLatency:       pick[time.Duration](r, 0, 200, 1000, 10_000, 40_000) * time.Microsecond,
		snapshotInterval:  pick[time.Duration](r, 100, 400, 1500) * time.Millisecond,
		snapshotThreshold: pick[uint64](r, 2, 8, 40, 1000),
		trailingLogs:      pick[uint64](r, 1, 4, 32, 1000),
		etagBlock:         pick[uint64](r, 1, 4, 64),
		startWait:         pick[time.Duration](r, 200, 1000, 5000) * time.Millisecond,
		leaderWait:        pick[time.Duration](r, 500, 2000) * time.Millisecond,
		heartbeat:         pick[time.Duration](r, 250, 250, 500) * time.Millisecond,
	}
	likely := pick(r, 0.15, 0.3, 0.6)
	for _, f := range allFaults {
		if r.Float64() < likely {
			p.faults = append(p.faults, f)
		}
	}
	// What was added later is drawn last, so that the seeds keep their plans.
	p.window = pick[int64](r, 0, 0, 0, 3, 30)
	p.churn = p.nodes > 1 && r.IntN(4) == 0
	p.generator = r.IntN(2) == 0
	p.wal = r.IntN(2) == 0
	if r.IntN(4) == 0 {
		// Only a node that asks the cluster at its start can notice that.
		p.faults, p.startWait = append(p.faults, setBack, setBack, restarts), time.Hour
	}
	p.drawMore(r)
	return p
}

// drawMore draws what makes some rare things frequent.
func (p *plan) drawMore(r *rand.Rand) {
	if r.IntN(4) == 0 { // Nodes that miss a little need a snapshot.
		p.snapshotInterval, p.snapshotThreshold, p.trailingLogs = 100*time.Millisecond, 2, 1
		p.faults = append(p.faults, cutOff, resets)
	}
	if r.IntN(4) == 0 && p.startWait < time.Hour { // Nodes start without a cluster, in the middle of giving ids.
		p.hungry, p.startWait, p.diskLatency = true, 200*time.Millisecond, pick[time.Duration](r, 5, 40)*time.Millisecond
		p.faults = append(p.faults, blackouts)
	}
	p.slow, p.segmentBytes = drawSlowness(r), pick[int64](r, 8<<10, 8<<10, 1531, 3001)
	p.imports, p.late = r.IntN(6) == 0, p.window > 0 && r.IntN(4) == 0
	if p.slow.terms {
		p.faults = append(p.faults, orphans, orphans)
		if r.IntN(2) == 0 {
			p.faults = []fault{orphans} // Others keep a new leader from what it begins with.
		}
	}
	if r.IntN(25) == 0 {
		p.drawCrowd(r)
	}
	if r.IntN(30) == 0 {
		p.drawRewinds(r)
	}
	if r.IntN(3) == 0 { // A tenth of it is how long a tag must be in use.
		p.reserve = pick(r, 500*time.Millisecond, 2*time.Second)
		if !p.rewinds { // There all nodes hear of each other.
			p.faults = append(p.faults, cutOff)
		}
	}
	p.series, p.repeats = r.IntN(3) == 0, r.IntN(4) == 0
	if kind := r.IntN(60); !p.rewinds && p.crowd == 0 {
		switch {
		case kind < 4:
			p.drawScenario(r, weather)
		case kind < 5:
			p.drawScenario(r, moves)
		case kind < 6:
			p.drawScenario(r, names)
		case kind < 8:
			p.drawScenario(r, copies)
		case kind < 9:
			p.drawScenario(r, removals)
		case kind < 10:
			p.drawScenario(r, unread)
		case kind < 12:
			p.drawScenario(r, ports)
		}
	}
	p.live = p.rewinds && r.IntN(2) == 0
	if r.IntN(3) == 0 && p.scenario == "" && p.crowd == 0 {
		p.snowflakes, p.length = true, p.length+3*time.Second
	}
}

// drawCrowd draws many databases. Faults leave time for the ceilings of all of them:
// see ceilings.known.
func (p *plan) drawCrowd(r *rand.Rand) {
	p.crowd, p.calm = pick[int64](r, 2, 4), 300*time.Millisecond
	p.faults = []fault{
		restarts, setBack, setBack, setBack, setBack, setBack, setBack, setBack, setBack, setBack, setBack,
		setBack, setBack, setBack,
	}
	p.churn, p.hungry, p.slow = false, false, slowness{}
	p.length, p.startWait, p.jitter, p.diskLatency = 10*time.Second, time.Hour, 0, min(p.diskLatency, time.Millisecond)
}

// draws says whether the seed has a scenario, or one of what takes no scenario's place.
func (p plan) draws(what string) bool {
	switch what {
	case "repeats":
		return p.repeats
	case "rewinds":
		return p.rewinds
	case "live":
		return p.live
	default:
		return string(p.scenario) == what
	}
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// String describes the plan in one line.
func (p plan) String() string {
	var names []string
	for _, f := range p.faults {
		names = append(names, string(f))
	}
	return fmt.Sprintf("seed %d: %d nodes, %d clients, %v, a fault each %v (%s), network %v+%v, disk %v, snapshot each %v and %d entries, "+
		"%d trailing, blocks of %d, window %d, churn %t, generator %t, wal %t of %d, hungry %t, slow %+v, imports %t, late %t, crowd %d, "+
		"rewinds %t, live %t, reserve %v, series %t, snowflakes %t, repeats %t, scenario %q, named %t",
		p.seed, p.nodes, p.clients, p.length, p.calm, strings.Join(names, ", "), p.latency, p.jitter, p.diskLatency,
		p.snapshotInterval, p.snapshotThreshold, p.trailingLogs, p.etagBlock, p.window,
		p.churn, p.generator, p.wal, p.segmentBytes, p.hungry, p.slow, p.imports, p.late, p.crowd,
		p.rewinds, p.live, p.reserve, p.series, p.snowflakes, p.repeats, p.scenario, p.named)
}
