//go:build !wasip1

package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
)

// skipped is how much a recovery raises counters: more than is given in a test.
const skipped = 10_000

// tried is a call with a request id, which its caller makes again after a recovery.
type tried struct {
	client *client
	op     history.Op
	last   lastRequest
}

// TestARecoveryBetweenTryAndRetry: callers made tries, whose outcome they know or not; the majority is lost for
// good, while survivors lag; the survivors are recovered, and the callers make their calls again while the new
// log passes all that they had seen. Each gets its first answer or REQUEST_ID_EXPIRED, and no call counts twice.
func TestARecoveryBetweenTryAndRetry(t *testing.T) {
	const seeds = 3
	var unknown, remembered, expired int
	for _, nodes := range []int{3, 5} {
		for seed := range uint64(seeds) {
			plan := sizedPlan(nodes)
			plan.seed = 1 + seed
			inClusterOf(t, plan, func(w *world, c *client) {
				d := &disaster{t: t, client: c}
				d.play()
				for _, v := range check.Ops(w.history.all(), check.Options{}).Violations {
					t.Errorf("%d nodes, seed %d: %v", nodes, plan.seed, v)
				}
				unknown, remembered, expired = unknown+d.unknown, remembered+d.remembered, expired+d.expired
			})
		}
	}
	t.Logf("%d tries of unknown outcome, %d answers remembered, %d retries refused", unknown, remembered, expired)
	if unknown == 0 || remembered == 0 || expired == 0 {
		t.Error("this test proves little: a kind of outcome is missing")
	}
}

// disaster is one loss of the majority, and what callers see of it.
type disaster struct {
	t                            *testing.T
	client                       *client
	tries                        []*tried
	unknown, remembered, expired int
}

func (d *disaster) play() {
	c := d.client
	w := c.world
	nodes := slices.Clone(w.founders())
	c.random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	survivors, lost := nodes[:len(nodes)/2], nodes[len(nodes)/2:]
	d.try(nodes, time.Second)
	var back []func()
	for _, s := range survivors { // Each has seen another part of the log.
		d.others(nodes, c.random.IntN(20))
		back = append(back, s.hold())
		s.current().kill(false)
	}
	d.others(lost, c.random.IntN(40))
	w.running.Go(func() {
		sleep(w.ctx, time.Duration(c.random.Int64N(int64(8*time.Millisecond))))
		for _, s := range lost {
			s.hold()
			s.current().kill(true)
		}
	})
	d.try(lost, 100*time.Millisecond)
	for _, op := range w.history.all() {
		if op.Outcome == history.Unknown {
			d.unknown++
		}
	}
	d.recover(survivors)
	for _, start := range back {
		start()
	}
	d.raised(survivors)
	for range 4 {
		d.others(survivors, 1+c.random.IntN(30))
		d.retry(survivors)
	}
}

// try has callers, all at once, ask for an identity with a request id of their own.
func (d *disaster) try(nodes []*server, limit time.Duration) {
	var callers sync.WaitGroup
	for range 4 {
		c := newClient(d.client.world, 1+len(d.tries))
		c.seen = d.client.seen
		x := &tried{client: c, op: history.Op{Kind: history.Next, Name: "tried", Count: 1, Request: fmt.Sprint("try-", len(d.tries))}}
		x.last = lastRequest{&idnodev1.RequestId{Id: x.op.Request}, c.seen}
		d.tries = append(d.tries, x)
		s := pick(c.random, nodes...)
		callers.Go(func() {
			defer c.close()
			sleep(c.world.ctx, time.Duration(c.random.Int64N(int64(4*time.Millisecond))))
			x.make(s, limit)
		})
	}
	callers.Wait()
}

// make makes the call once.
func (x *tried) make(s *server, limit time.Duration) history.Op {
	ctx, cancel := context.WithTimeout(x.client.world.ctx, limit)
	defer cancel()
	return x.client.onceWithin(ctx, s, x.op, func(ctx context.Context, s *server, op *history.Op) error {
		r, err := x.client.ids(s).NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: op.Name, Count: op.Count, RequestId: x.last.id})
		op.Blocks, op.Index = blocks(r.GetBlocks()), r.GetLogIndex()
		return err
	})
}

// retry has each call be made again, until its outcome is known.
func (d *disaster) retry(nodes []*server) {
	for _, x := range d.tries {
		x.client = d.client
		x.last.id.RetrySince = &x.last.since
		got := history.Op{Outcome: history.Unknown}
		for begun := time.Now(); time.Since(begun) < settling && !settled(got); sleep(d.client.world.ctx, betweenTries) {
			got = x.make(pick(d.client.random, nodes...), time.Second)
		}
		switch {
		case got.Outcome == history.OK:
			d.remembered++
		case got.Code == "REQUEST_ID_EXPIRED":
			d.expired++
		default:
			d.t.Errorf("the retry of %s ends %s %s", x.op.Request, got.Outcome, got.Code)
		}
	}
}

// settled says whether an answer is one to a request id.
func settled(op history.Op) bool { return op.Outcome == history.OK || op.Code == "REQUEST_ID_EXPIRED" }

// others has the log grow by so many calls without request ids.
func (d *disaster) others(nodes []*server, count int) {
	for begun := time.Now(); count > 0; {
		r, err := d.client.ids(pick(d.client.random, nodes...)).NextIdentity(d.client.world.ctx,
			&idnodev1.NextIdentityRequest{Name: "others", Count: 1})
		if err == nil {
			d.client.seen, count = max(d.client.seen, r.GetLogIndex()), count-1
			continue
		}
		if time.Since(begun) > 3*settling {
			d.t.Errorf("no identity after %v: %v", time.Since(begun), err)
			return
		}
		time.Sleep(betweenTries)
	}
}

// recover makes the survivors members of a new cluster, and records that.
func (d *disaster) recover(survivors []*server) {
	w := d.client.world
	w.tracer.end() // The model knows no recovery.
	w.hashes.forget()
	var keep []string
	for _, s := range survivors {
		keep = append(keep, s.tag())
	}
	event := history.Op{Kind: history.Recovered, Call: w.history.now(), Outcome: history.OK}
	for i, s := range survivors {
		state, err := s.recover(keep)
		if err != nil {
			d.t.Fatal(err)
		}
		if index := state.AppliedIndex(); i == 0 || index < event.Index {
			event.Index = index
		}
	}
	w.history.add(event)
}

// raised records how far the recovery raised the identity: as a seed.
func (d *disaster) raised(nodes []*server) {
	d.others(nodes, 1) // They serve.
	op := history.Op{Kind: history.Seed, Name: "tried", Call: d.client.world.history.now(), Outcome: history.OK}
	r, err := d.client.ids(nodes[0]).GetIdentity(d.client.world.ctx, &idnodev1.GetIdentityRequest{Name: op.Name})
	if err != nil {
		d.t.Error(err)
	}
	op.Value = r.GetIdentity().GetValue()
	op.Result = op.Value
	d.client.world.history.add(op)
}

// recover makes the machine's disk that of a member of a new cluster. No process runs on it.
func (s *server) recover(keep []string) (*fsm.State, error) {
	p := &process{server: s, port: s.world.network.port(s.host), stop: func() {}, gone: make(chan struct{})}
	p.session = s.disk.mount(p.kill, func(index uint64) { s.world.found("the recovery of %s has lost entry %d", s.host, index) })
	defer p.kill(false)
	state := fsm.New(fsm.Config{})
	return state, cluster.Recover(s.world.ctx, cluster.Recovery{
		Storage: storage{p.session, s.world.plan, p}, Keep: keep, StateMachine: state, Registry: state, Logger: slog.New(slog.DiscardHandler),
		TakeSnapshot: func() cluster.Snapshot { return state.Snapshot() },
		Change: func() error {
			_, err := state.Recover(fsm.Recovery{Keep: keep, SkipAhead: skipped})
			return err
		},
	})
}
