package simulation

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

const (
	// nodeLimit is how long a node may give no identity and say that it is ready, or a majority that
	// is connected wait for a leader which serves it.
	nodeLimit = 10 * time.Second
	// callsPort is the port that a node dials for what the leader must answer.
	callsPort = raftPort
)

// portsOf are the ways between a machine and others, in one direction or in both.
func portsOf(s *server, others []*server, ports []string, requests, answers bool) (ways []way) {
	for _, other := range others {
		for _, port := range ports {
			if requests {
				ways = append(ways, way{edge{other.host, s.host}, port, false})
			}
			if answers {
				ways = append(ways, way{edge{s.host, other.host}, port, true})
			}
		}
	}
	return ways
}

// closePorts closes ports of machines, again and again, until ctx ends: for all others, or for one, in
// a direction or in both, of the leader's machine mostly; or all ports between two machines.
func (n *nemesis) closePorts(ctx context.Context) {
	for sleep(ctx, nodeLimit/2); ctx.Err() == nil; sleep(ctx, nodeLimit/2) {
		closed, _ := n.leaderOrAll(ctx)
		s := closed[0]
		others := n.world.othersThan(s)
		n.random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
		if n.random.IntN(3) == 0 {
			others = others[:1]
		}
		which := n.random.IntN(3) // Requests, answers, or both.
		ways := portsOf(s, others, pick(n.random, []string{grpcPort}, []string{raftPort}), which != 1, which != 0)
		if n.random.IntN(4) == 0 {
			ways = nil
			for _, one := range []*server{s, others[0]} {
				other := []*server{s, others[0]}
				ways = append(ways, portsOf(one, slices.DeleteFunc(other, func(o *server) bool { return o == one }),
					[]string{grpcPort, raftPort}, true, true)...)
			}
		}
		n.world.log.Info("fault", "kind", "ports", "node", s.host, "ways", ways)
		n.world.network.setClosed(ways, true)
		n.made++
		sleep(ctx, nodeLimit*3/2)
		n.world.network.setClosed(ways, false)
	}
}

// nodesJudge judges each node where ports are closed. It knows the true state of the network.
//
// A node that gives no identity does not say for longer than nodeLimit that it is ready. One whose
// calls get to the leader, and that the leader reaches, gives identities. Where a majority is connected, the nodes of some majority do.
type nodesJudge struct {
	*liveness
	seen map[*server]*sight
	// leader leads since led.
	leader *server
	led    time.Time
}

// sight is when a node last gave an identity, said that it is not ready, and said that it leads, in
// nanoseconds.
type sight struct {
	served, unready, leads atomic.Int64
	term                   atomic.Uint64
	asking, watching       atomic.Bool
	// caller asks for identities and watcher what a node says of itself, at the same time: a client is
	// for one goroutine.
	caller, watcher *client
}

func (s *sight) last(what *atomic.Int64) time.Time { return time.Unix(0, what.Load()) }

func newNodesJudge(w *world) *nodesJudge {
	j := &nodesJudge{liveness: newLiveness(w), seen: map[*server]*sight{}}
	for i, s := range w.founders() {
		number := w.plan.clients + 80 + 2*i
		j.seen[s] = &sight{caller: newClient(w, number), watcher: newClient(w, number+1)}
	}
	return j
}

// run judges until ctx ends, or once something is wrong.
func (j *nodesJudge) run(ctx context.Context) {
	defer func() {
		j.asking.Wait()
		for _, s := range j.seen {
			s.caller.close()
			s.watcher.close()
		}
	}()
	for ctx.Err() == nil && j.look() {
		sleep(ctx, looks)
	}
}

func (j *nodesJudge) look() bool {
	for s, seen := range j.seen {
		j.ask(s, seen)
	}
	if j.world.history.lastGiven().IsZero() {
		return true // To form a cluster takes all its nodes.
	}
	j.findLeader()
	later := func(times ...time.Time) time.Duration { return time.Since(slices.MaxFunc(times, time.Time.Compare)) }
	served, connected := false, false
	for _, m := range j.majorities() {
		all := !slices.ContainsFunc(m, func(s *server) bool { return later(j.seen[s].last(&j.seen[s].served)) > nodeLimit })
		since, good := goodSince(m, 0)
		served, connected = served || all, connected || good && later(since) > nodeLimit
	}
	if connected && !served {
		j.world.found("a majority was connected for %v, and in none did all nodes give an identity", nodeLimit)
		return false
	}
	for s, seen := range j.seen {
		up, is := s.upSince()
		if !is {
			continue
		}
		if dry := later(up, seen.last(&seen.served), seen.last(&seen.unready)); dry > nodeLimit {
			j.world.found("node %s gave no identity for %v, and was ready", s.host, dry)
			return false
		}
		reached, reaches := j.world.network.reachesSince(s.host, j.leader)
		if dry := later(up, j.led, reached, seen.last(&seen.served)); reaches && dry > nodeLimit {
			j.world.found("node %s gave no identity for %v, though it reached the leader %s", s.host, dry, j.leader.host)
			return false
		}
	}
	return true
}

// ask asks a node for an identity, and what it says of itself.
func (j *nodesJudge) ask(s *server, seen *sight) {
	within := func(busy *atomic.Bool, do func(ctx context.Context)) {
		if !busy.CompareAndSwap(false, true) {
			return
		}
		j.asking.Go(func() {
			defer busy.Store(false)
			ctx, cancel := context.WithTimeout(j.world.ctx, answerLimit)
			defer cancel()
			do(ctx)
		})
	}
	within(&seen.asking, func(ctx context.Context) {
		op := history.Op{Kind: history.Next, Name: "orders", Count: 1}
		if seen.caller.onceWithin(ctx, s, op, seen.caller.next).Outcome == history.OK {
			seen.served.Store(time.Now().UnixNano())
		}
	})
	within(&seen.watching, func(ctx context.Context) {
		if !seen.watcher.ready(ctx, s) {
			seen.unready.Store(time.Now().UnixNano())
		}
		if r, err := seen.watcher.cluster(s).GetStatus(ctx, &idnodev1.GetStatusRequest{}); err == nil && r.GetLeaderTag() == s.tag() {
			seen.term.Store(r.GetTerm())
			seen.leads.Store(time.Now().UnixNano())
		}
	})
}

// findLeader finds who leads by its own word, in the newest term.
func (j *nodesJudge) findLeader() {
	var leader *server
	for s, seen := range j.seen {
		if time.Since(seen.last(&seen.leads)) < 4*looks && (leader == nil || seen.term.Load() > j.seen[leader].term.Load()) {
			leader = s
		}
	}
	if leader != j.leader {
		j.leader, j.led = leader, time.Now()
	}
}

// reachesSince is since when a host's calls get to a leader, and their answers back, and the leader's log gets to
// the host, without which it opens no session; false if they do not.
func (n *network) reachesSince(from string, leader *server) (since time.Time, reaches bool) {
	if leader == nil {
		return since, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	there, back := way{edge{from, leader.host}, callsPort, false}, way{edge{leader.host, from}, callsPort, true}
	log, kept := way{edge{leader.host, from}, raftPort, false}, way{edge{from, leader.host}, raftPort, true}
	if from != leader.host && slices.ContainsFunc([]way{there, back, log, kept}, n.stops) {
		return since, false
	}
	for _, e := range []edge{there.edge, back.edge, {from: from}, {from: leader.host}} {
		if t := n.troubled[e]; t.After(since) {
			since = t
		}
	}
	return since, true
}

// ready says whether a node says that it is ready.
func (c *client) ready(ctx context.Context, s *server) bool {
	r, err := healthv1.NewHealthClient(c.conn(s)).Check(ctx, &healthv1.HealthCheckRequest{})
	return err == nil && r.GetStatus() == healthv1.HealthCheckResponse_SERVING
}

// TestAPortIsCut: a leader whose answers do not get to the others gives leadership away, and all serve. A
// node that alone does not get through to the leader is not ready, and says why.
func TestAPortIsCut(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ports []string
		// all says that none of the others gets through, and not only one.
		all, requests, answers bool
	}{
		{"all requests to the leader", []string{callsPort}, true, true, false},
		{"all answers of the leader", []string{callsPort}, true, false, true},
		{"all of the port for callers", []string{grpcPort}, true, true, true},
		{"all of the Raft port", []string{raftPort}, true, true, true},
		{"one link, of the calls alone", []string{callsPort}, false, true, true},
		{"one link", []string{grpcPort, raftPort}, false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inCluster(t, 3, func(w *world, c *client) {
				leader := c.leader(t)
				others := w.othersThan(leader)
				blocked := others
				if !tt.all {
					blocked = others[:1]
				}
				ways := portsOf(leader, blocked, tt.ports, tt.requests, tt.answers)
				if !tt.all && len(tt.ports) > 1 {
					ways = append(ways, portsOf(blocked[0], []*server{leader}, tt.ports, true, true)...)
				}
				w.network.setClosed(ways, true)
				begin := time.Now()
				if tt.all {
					c.allServe(t, w.founders(), begin.Add(nodeLimit))
				} else {
					time.Sleep(time.Until(begin.Add(5 * time.Second)))
					if c.ready(w.ctx, blocked[0]) {
						t.Errorf("%s is ready, and does not get through to the leader %s", blocked[0].host, leader.host)
					}
					got := c.once(w.ctx, blocked[0], history.Op{Kind: history.Next, Name: "orders", Count: 1}, c.next)
					if got.Code != "LEADER_UNREACHABLE" {
						t.Errorf("a call at %s ended with %q", blocked[0].host, got.Code)
					}
					c.allServe(t, []*server{leader, others[1]}, time.Now().Add(time.Second))
				}
				w.network.setClosed(ways, false)
				c.allServe(t, w.founders(), time.Now().Add(nodeLimit))
				time.Sleep(time.Second)
				for _, s := range w.founders() {
					if !c.ready(w.ctx, s) {
						t.Errorf("%s is not ready after all", s.host)
					}
				}
			})
		})
	}
}

// allServe fails if a node gives no identity before the deadline.
func (c *client) allServe(t *testing.T, nodes []*server, by time.Time) {
	t.Helper()
	var asking sync.WaitGroup
	for i, s := range nodes {
		asking.Go(func() {
			own := newClient(c.world, 40+i)
			defer own.close()
			if !own.servesBy(s, by) {
				t.Errorf("node %s gives no identity", s.host)
			}
		})
	}
	asking.Wait()
}
