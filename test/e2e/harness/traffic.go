package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goclient "github.com/idnode/idnode/client"
	"github.com/idnode/idnode/test/history"
)

const (
	// callersPerNode call each node over plain gRPC; one more uses the Go client.
	callersPerNode = 4
	// clientTimeout bounds a call of the Go client with all its tries: it would go
	// on for much longer than a node takes to refuse.
	clientTimeout = 2 * time.Second
	// retryFor bounds how long a call with a request id is repeated.
	retryFor = 20 * time.Second
	// thick is how many answered calls must come before a fault, within thickWait.
	thick     = 300
	thickWait = time.Minute
)

// Traffic is a mixed load, drawn from the seed of its run: identities one by one
// and in blocks, seeded, set back, hidden and forgotten; ranges used, returned and set;
// server-side ids, claims and releases, numbers of documents, reads and retries, in two databases, over
// plain gRPC, over streams and through the Go client, on all nodes.
type Traffic struct {
	run *Run
	// deadline is that of each call.
	deadline time.Duration
	// stop ends the drawing of new calls, and abort the retries.
	ctx, retries context.Context
	stop, abort  context.CancelFunc
	workers      sync.WaitGroup
	// highests is about the highest value taken of the identity whose ids are
	// claimed by hand, by database.
	highests sync.Map

	// hurried says that some callers give up after a moment.
	hurried atomic.Bool

	mu sync.Mutex
	// doors are where retries go.
	doors []door
}

// Start lets callers on all nodes make calls until the test ends, each with the
// given deadline.
func (r *Run) Start(t testing.TB, deadline time.Duration) *Traffic {
	t.Helper()
	tr := r.startPlain(deadline)
	for i := range r.cluster.Nodes {
		tr.addClient(t, i)
	}
	return tr
}

// startPlain starts the callers over plain gRPC.
func (r *Run) startPlain(deadline time.Duration) *Traffic {
	tr := &Traffic{run: r, deadline: deadline}
	tr.ctx, tr.stop = context.WithCancel(context.Background())
	tr.retries, tr.abort = context.WithCancel(context.Background())
	for _, n := range r.cluster.Nodes {
		tr.doors = append(tr.doors, plainDoor{n})
	}
	r.traffic = tr
	for _, n := range r.cluster.Nodes {
		tr.Add(n, callersPerNode)
		// One takes nothing but server-side ids, and so never waits for a quorum.
		tr.work(plainDoor{n}, (*worker).etags)
		tr.work(&streamDoor{plainDoor: plainDoor{n}}, (*worker).step)
	}
	for _, n := range r.cluster.Nodes {
		tr.work(plainDoor{n}, rewinds())
		tr.work(plainDoor{n}, bookkeeper(n))
	}
	return tr
}

func (tr *Traffic) highest(database string) *atomic.Int64 {
	v, _ := tr.highests.LoadOrStore(database, new(atomic.Int64))
	return v.(*atomic.Int64)
}

// Add lets further callers make calls of all kinds on n.
func (tr *Traffic) Add(n *Node, callers int) {
	for range callers {
		tr.work(plainDoor{n}, (*worker).step)
	}
}

// Hurry lets the callers give up one call in thirty after a few milliseconds, if they
// can repeat it.
func (tr *Traffic) Hurry() { tr.hurried.Store(true) }

// Crowd lets further callers on each node take identities as fast as they can, until
// the crowd is sent away.
func (tr *Traffic) Crowd(perNode int) (sendAway func()) {
	ctx, cancel := context.WithCancel(tr.ctx)
	var crowd sync.WaitGroup
	for _, n := range tr.run.cluster.Nodes {
		for range perNode {
			w := tr.worker(plainDoor{n})
			crowd.Go(func() {
				for ctx.Err() == nil {
					if w.try(w.home, history.Op{Kind: history.Next, Name: "orders"}, nil).Outcome != history.OK {
						Pause(ctx, time.Millisecond)
					}
				}
			})
		}
	}
	return func() {
		cancel()
		crowd.Wait()
	}
}

// Joined adds callers of a node that has joined, and lets repeated calls go there
// too.
func (tr *Traffic) Joined(n *Node, callers int) {
	tr.mu.Lock()
	tr.doors = append(tr.doors, plainDoor{n})
	tr.mu.Unlock()
	tr.Add(n, callers)
}

// addClient lets one caller use a Go client that knows the nodes in an order of
// its own.
func (tr *Traffic) addClient(t testing.TB, first int) {
	t.Helper()
	nodes := tr.run.cluster.Nodes
	var endpoints []string
	for i := range nodes {
		endpoints = append(endpoints, nodes[(first+i)%len(nodes)].GRPC)
	}
	cfg := goclient.Config{Endpoints: endpoints, Timeout: min(tr.deadline, clientTimeout)}
	if certs := tr.run.cluster.cfg.Certs; certs != "" {
		cfg.TLS = ClientTLS(t, certs, "client")
	}
	cl, err := goclient.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	tr.work(clientDoor{cl}, (*worker).step)
}

// work starts one caller that goes in through d and takes one step after another.
func (tr *Traffic) work(d door, step func(*worker) history.Outcome) {
	w := tr.worker(d)
	tr.workers.Go(func() { w.run(step) })
}

func (tr *Traffic) worker(d door) *worker {
	n := tr.run.callers.Add(1)
	w := &worker{Traffic: tr, number: n, home: d, random: tr.run.Random(uint64(n))}
	w.database = databases[w.random.IntN(4)/3] // a quarter of the callers uses the second
	return w
}

// Thick waits until enough calls were answered for a fault to meet some, and
// fails the test if they do not come.
func (tr *Traffic) Thick(t testing.TB) {
	t.Helper()
	before := tr.run.OK()
	Eventually(t, thickWait, "thick traffic before the fault", func(context.Context) error {
		if n := tr.run.OK() - before; n < thick {
			return fmt.Errorf("%d calls were answered, want %d", n, thick)
		}
		return nil
	})
}

// Stop ends the drawing of new calls and waits for those in flight, with their
// retries.
func (tr *Traffic) Stop() {
	tr.stop()
	timer := time.AfterFunc(retryFor, tr.abort)
	defer timer.Stop()
	tr.workers.Wait()
}

// end stops the traffic and lets a sound cluster say what each counter holds.
func (tr *Traffic) end(t testing.TB) {
	if t.Failed() {
		tr.abort()
	}
	tr.Stop()
	if t.Failed() {
		return
	}
	w := &worker{Traffic: tr, number: tr.run.callers.Add(1)}
	for _, database := range databases {
		for _, name := range identityNames {
			for _, d := range tr.doors {
				if p := d.(plainDoor); p.n.running() {
					w.try(d, history.Op{Kind: history.Get, Database: database, Name: name}, nil)
				}
			}
		}
	}
}

// Probe takes one identity through n, as often as it takes, and returns how long
// that took; time in which the machine stood still is not counted.
func (tr *Traffic) Probe(t testing.TB, n *Node) time.Duration {
	t.Helper()
	w := &worker{Traffic: tr, number: tr.run.callers.Add(1)}
	begin := time.Now()
	Eventually(t, 20*time.Second, "an identity through node "+n.Tag, func(context.Context) error {
		if got := w.try(plainDoor{n}, history.Op{Kind: history.Next, Name: "orders"}, nil); got.Outcome != history.OK {
			return fmt.Errorf("%s: %s", got.Outcome, got.Code)
		}
		return nil
	})
	took := time.Since(begin)
	return took - tr.run.Stalls.Between(begin, begin.Add(took))
}

// Probes does the same through all of the nodes at the same time.
func (tr *Traffic) Probes(t testing.TB, nodes ...*Node) []time.Duration {
	t.Helper()
	took := make([]time.Duration, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { took[i] = tr.Probe(t, n) })
	}
	all.Wait()
	return took
}

// worker is one caller, which waits for each call before it makes the next.
type worker struct {
	*Traffic
	number int64
	home   door
	// database is the one that it calls.
	database string
	random   *rand.Rand
}

func (w *worker) run(step func(*worker) history.Outcome) {
	for w.ctx.Err() == nil {
		if step(w) != history.OK {
			Pause(w.ctx, 5*time.Millisecond) // a refusing node is not to be hammered
		}
		Pause(w.ctx, time.Duration(w.random.ExpFloat64()*float64(time.Millisecond)))
	}
}

// issue makes a call, and repeats one with a request id until its outcome is
// known. Now and then an answered one is repeated too.
func (w *worker) issue(op history.Op, token *string) history.Op {
	first := time.Now()
	op.Database = w.database
	deadline := w.deadline
	if op.Request != "" && w.hurried.Load() && w.random.IntN(30) == 0 {
		deadline = time.Duration(1+w.random.IntN(5)) * time.Millisecond
	}
	got := w.tryFor(deadline, w.home, op, token)
	if op.Request == "" {
		return got
	}
	if got.Outcome == history.OK {
		if w.random.IntN(20) == 0 {
			w.repeat(op, token)
		}
		return got
	}
	for got.Outcome == history.Unknown || passing(got.Code) {
		if w.retries.Err() != nil || time.Since(first) > retryFor {
			break
		}
		Pause(w.retries, 10*time.Millisecond)
		got = w.repeat(op, token)
	}
	return got
}

// repeat makes a call again, through any node.
func (w *worker) repeat(op history.Op, token *string) history.Op {
	w.Traffic.run.repeats.Add(1)
	w.mu.Lock()
	d := w.doors[w.random.IntN(len(w.doors))]
	w.mu.Unlock()
	return w.try(d, op, token)
}

// passing says whether a call that was refused with the code may be let through
// a little later.
func passing(code string) bool {
	switch code {
	case "NO_QUORUM", "LEADER_UNREACHABLE", "STARTING", "STOPPING", "OVERLOADED", "NO_ENDPOINT", "NOT_FORMED":
		return true
	}
	return false
}

// try makes a call once and records it.
func (w *worker) try(d door, op history.Op, token *string) history.Op {
	return w.tryFor(w.deadline, d, op, token)
}

func (w *worker) tryFor(deadline time.Duration, d door, op history.Op, token *string) history.Op {
	// The call's context is not the traffic's: what is in flight ends by itself.
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	op.Client, op.Node = w.number, d.tag()
	p := w.Traffic.run.recorder.Begin(op)
	outcome, code := outcomeOf(op.Kind, d.do(ctx, &p.Op, token))
	p.End(outcome, code)
	return p.Op
}
