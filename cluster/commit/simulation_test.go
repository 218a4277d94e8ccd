package commit

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// This file throws everything at the Gatherers and Batchers of a small cluster in virtual
// time: leaders that come and go, lie dead or are two at a time; groups that are lost,
// repeated, delayed for seconds, refused; answers that are lost; entries that are
// forgotten or applied long after everybody gave up; quorums that vanish; callers that go
// away; sessions that are opened again behind a node's back. What must hold is simple,
// and checked at the end.

// faults are the probabilities, in percent, of what the simulation does.
type faults struct {
	refuse, drop, repeat, loseAnswer, hang int
	entryLost, entryLate, entryRefused     int
	shortDeadline                          int
	steps                                  int
}

// machine is a tiny state machine with the session rules. It counts how often
// each operation was applied.
type machine struct {
	mu       sync.Mutex
	index    uint64
	sessions map[string]*sessionState
	applied  map[string]int
}

type sessionState struct {
	number, acknowledged uint64
	results              map[uint64][][]byte
}

func (m *machine) apply(data []byte) ([]raftlog.GroupResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry, err := raftlog.DecodeEntry(data, raftlog.FormatVersion)
	m.index++
	var results []raftlog.GroupResult
	for _, g := range entry.Groups {
		results = append(results, m.applyGroup(g))
	}
	return results, err
}

func (m *machine) applyGroup(g raftlog.Group) raftlog.GroupResult {
	if len(g.Origin) == 0 {
		return raftlog.GroupResult{Status: raftlog.Applied, Results: m.run(g.Operations)}
	}
	s := m.sessions[string(g.Origin)]
	if s == nil || s.number != g.Session {
		return raftlog.GroupResult{Status: raftlog.StaleSession}
	}
	acknowledged := max(s.acknowledged, g.Acknowledged)
	if g.Sequence <= acknowledged || g.Sequence > acknowledged+64 {
		return raftlog.GroupResult{Status: raftlog.StaleSequence}
	}
	if _, seen := s.results[g.Sequence]; !seen {
		s.results[g.Sequence] = m.run(g.Operations)
	}
	s.acknowledged = acknowledged
	results := s.results[g.Sequence]
	for n := range s.results {
		if n <= acknowledged {
			delete(s.results, n)
		}
	}
	return raftlog.GroupResult{Status: raftlog.Applied, Results: results}
}

func (m *machine) run(operations [][]byte) [][]byte {
	var results [][]byte
	for _, op := range operations {
		if origin, ok := bytes.CutPrefix(op, []byte("announce ")); ok {
			m.sessions[string(origin)] = &sessionState{number: m.index, results: make(map[uint64][][]byte)}
			results = append(results, binary.BigEndian.AppendUint64(nil, m.index))
			continue
		}
		m.applied[string(op)]++
		results = append(results, append([]byte("did "), op...))
	}
	return results
}

// simulation is a cluster of a few nodes around one machine.
type simulation struct {
	machine machine
	nodes   []*simNode
	// background counts what is on its way behind the callers' backs.
	background sync.WaitGroup

	mu     sync.Mutex
	faults faults
	random *rand.Rand
	found  []string
}

type simNode struct {
	sim      *simulation
	name     string
	gatherer *Gatherer
	batcher  *Batcher
	stepDown context.CancelFunc
}

// percent says yes with the given probability.
func (s *simulation) percent(pick func(faults) int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(100) < pick(s.faults)
}

// between returns a random duration.
func (s *simulation) between(low, high time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return low + time.Duration(s.random.Int64N(int64(high-low+1)))
}

func (s *simulation) intN(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

var errSimulated = errors.New("simulated")

// Send is the network between a node and a leader.
func (n *simNode) Send(ctx context.Context, leader string, group []byte) (raftlog.GroupResult, error) {
	s := n.sim
	target := s.node(leader)
	if target == n {
		return target.batcher.Submit(ctx, group)
	}
	switch {
	case s.percent(func(f faults) int { return f.refuse }):
		return raftlog.GroupResult{}, notLead
	case s.percent(func(f faults) int { return f.drop }):
		wait(ctx, s.between(0, time.Second))
		return raftlog.GroupResult{}, errSimulated
	case s.percent(func(f faults) int { return f.repeat }):
		// A second copy is on its way: only an answer says the outcome of both.
		s.deliverLater(target, group)
		result, err := n.deliver(ctx, target, group)
		if outcome.Of(err) == outcome.NotApplied {
			err = outcome.NewUnknown(outcome.Unspecified, err)
		}
		return result, err
	}
	return n.deliver(ctx, target, group)
}

// deliver brings a group to a leader, and perhaps the answer back.
func (n *simNode) deliver(ctx context.Context, target *simNode, group []byte) (raftlog.GroupResult, error) {
	s := n.sim
	if !wait(ctx, s.between(0, 20*time.Millisecond)) {
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.Deadline, ctx.Err())
	}
	if s.percent(func(f faults) int { return f.loseAnswer }) {
		s.deliverLater(target, group)
		wait(ctx, s.between(0, time.Second))
		return raftlog.GroupResult{}, outcome.NewUnknown(outcome.Unspecified, errSimulated)
	}
	return target.batcher.Submit(ctx, group)
}

// apply gives an entry to the state machine.
func (s *simulation) apply(entry []byte) []raftlog.GroupResult {
	results, err := s.machine.apply(entry)
	if err != nil {
		s.fault("an entry is damaged: %v", err)
	}
	return results
}

// fault remembers something that must not happen.
func (s *simulation) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, fmt.Sprintf(format, args...))
}

// deliverLater brings a copy of a group to a leader, or to another node that may
// lead by then, perhaps seconds later.
func (s *simulation) deliverLater(target *simNode, group []byte) {
	s.background.Go(func() {
		time.Sleep(s.between(0, 3*time.Second))
		if s.intN(2) == 0 {
			target = s.nodes[s.intN(len(s.nodes))]
		}
		_, _ = target.batcher.Submit(context.Background(), group)
	})
}

func (s *simulation) node(name string) *simNode {
	for _, n := range s.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// Append is the log of one node, with all that may become of an entry.
func (n *simNode) Append(entry []byte) <-chan Appended {
	s, done := n.sim, make(chan Appended, 1)
	s.background.Go(func() {
		time.Sleep(s.between(0, 10*time.Millisecond))
		switch {
		case s.percent(func(f faults) int { return f.entryRefused }):
			done <- Appended{Err: notLead}
		case s.percent(func(f faults) int { return f.hang }):
			// Nobody ever hears of it, though it may be applied.
			if s.intN(2) == 0 {
				time.Sleep(s.between(0, 3*time.Second))
				s.apply(entry)
			}
			return
		case s.percent(func(f faults) int { return f.entryLost }):
			done <- Appended{Err: outcome.NewUnknown(outcome.Storage, errSimulated)}
		case s.percent(func(f faults) int { return f.entryLate }):
			done <- Appended{Err: outcome.NewUnknown(outcome.LeadershipLost, nil)}
			s.background.Go(func() {
				time.Sleep(s.between(0, 3*time.Second))
				s.apply(entry)
			})
		default:
			done <- Appended{Results: s.apply(entry)}
		}
	})
	return done
}

// Open announces the node.
func (n *simNode) Open(ctx context.Context) (uint64, []byte, error) {
	result, err := n.gatherer.ProposeIdempotent(ctx, []byte("announce "+n.name))
	if err != nil {
		return 0, nil, err
	}
	return binary.BigEndian.Uint64(result), []byte(n.name), nil
}

func newSimulation(t *testing.T, f faults, seed uint64) *simulation {
	s := &simulation{faults: f, random: rand.New(rand.NewPCG(seed, 1))}
	s.machine.sessions, s.machine.applied = make(map[string]*sessionState), make(map[string]int)
	for i := range 3 {
		n := &simNode{sim: s, name: string(rune('A' + i)), stepDown: func() {}}
		s.nodes = append(s.nodes, n)
		n.batcher = NewBatcher(BatcherConfig{
			Log: n, Header: func() (uint32, []byte) { return 1, []byte("cluster") },
			Logger: discard, Events: untoldEntries, Now: time.Now, AnswerTimeout: time.Second, Linger: time.Duration(i) * time.Millisecond,
		})
	}
	for i, n := range s.nodes {
		g := New(Config{
			Sender: n, Opener: n, Logger: discard, Events: untold, ResultBound: noResults,
			MaxOperations: 4, LingerMin: 2, Linger: time.Duration(i) * time.Millisecond,
			SendTimeout: 2 * time.Second, GiveUp: 5 * time.Second, CallLimit: time.Duration(i) * 3 * time.Second,
		})
		n.gatherer = g
		g.SetQuorum(true)
	}
	return s
}

// elect makes a node lead, as it and the others learn sooner or later. The one
// before may lead on for a while beside it.
func (s *simulation) elect(n *simNode) {
	for _, other := range s.nodes {
		stepDown := other.stepDown
		other.stepDown = func() {}
		s.background.Go(func() {
			time.Sleep(s.between(0, 300*time.Millisecond))
			stepDown()
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.stepDown = cancel
	n.batcher.Lead(ctx)
	for _, other := range s.nodes {
		s.background.Go(func() {
			time.Sleep(s.between(0, 300*time.Millisecond))
			other.gatherer.SetLeader(n.name)
		})
	}
}

// disturb is one random event.
func (s *simulation) disturb() {
	n := s.nodes[s.intN(len(s.nodes))]
	switch s.intN(8) {
	case 0, 1, 2:
		s.elect(n)
	case 3:
		n.stepDown()
		n.gatherer.SetLeader("")
	case 4:
		n.gatherer.SetLeader(s.nodes[s.intN(len(s.nodes))].name)
	case 5:
		n.gatherer.SetQuorum(false)
		heal := s.between(0, 3*time.Second)
		s.background.Go(func() {
			time.Sleep(heal)
			n.gatherer.SetQuorum(true)
		})
	case 6:
		// An old announcement comes through: the session is not the newest.
		s.apply(raftlog.AppendEntry(nil, raftlog.Header{Format: 1}, [][]byte{
			raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{[]byte("announce " + n.name)}}),
		}))
	case 7:
		n.batcher.StepDown()
	}
}

// outcomes is what the callers were told, by operation.
type outcomes struct {
	mu   sync.Mutex
	told map[string]error
	slow []string
}

// callers start operations on every node and remember what they are told. Half
// of them have no deadline of their own.
func (s *simulation) callers(v *outcomes, each, rounds int) *sync.WaitGroup {
	var all sync.WaitGroup
	for _, n := range s.nodes {
		for c := range each {
			all.Go(func() {
				for i := range rounds {
					s.call(v, n, fmt.Sprintf("%s/%d/%d", n.name, c, i), c%2 == 0)
					time.Sleep(s.between(0, 200*time.Millisecond))
				}
			})
		}
	}
	return &all
}

// longestWait is the longest a caller may wait: a group that is given up, and one
// before it, with what a round trip may take.
const longestWait = 20 * time.Second

func (s *simulation) call(v *outcomes, n *simNode, operation string, bounded bool) {
	ctx := context.Background()
	if bounded && s.percent(func(f faults) int { return f.shortDeadline }) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.between(0, 500*time.Millisecond))
		defer cancel()
	}
	start := time.Now()
	result, err := n.gatherer.Propose(ctx, []byte(operation))
	if err == nil && string(result) != "did "+operation {
		s.fault("%s got the answer %q", operation, result)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told[operation] = err
	if d := time.Since(start); d > longestWait {
		v.slow = append(v.slow, fmt.Sprintf("%s waited %v and got %v", operation, d, err))
	}
}

// check compares what callers were told with what happened.
func (s *simulation) check(v *outcomes, operations int) {
	if len(v.told) != operations {
		s.fault("%d callers were answered, of %d", len(v.told), operations)
	}
	for _, line := range v.slow {
		s.fault("%s", line)
	}
	for operation, err := range v.told {
		times := s.machine.applied[operation]
		var known *outcome.Error
		switch {
		case times > 1:
			s.fault("%s was applied %d times; its caller got %v", operation, times, err)
		case err == nil && times != 1:
			s.fault("%s was not applied, but its caller got a result", operation)
		case err != nil && !errors.As(err, &known):
			s.fault("%s got an error without an outcome: %v", operation, err)
		case outcome.Of(err) == outcome.NotApplied && times != 0:
			s.fault("%s was applied, but its caller got %v", operation, err)
		}
	}
}

// tally counts what callers were told.
type tally map[outcome.Outcome]int

// run plays the whole thing: trouble, then peace, then the end.
func (s *simulation) run(f faults, told tally) {
	v := &outcomes{told: make(map[string]error)}
	const each, rounds = 4, 10
	s.elect(s.nodes[0])
	all := s.callers(v, each, rounds)
	for range f.steps {
		time.Sleep(s.between(0, time.Second))
		s.disturb()
	}
	s.heal()
	all.Wait()
	s.afterwards(v)
	late := s.farewell(v)
	s.close()
	late.Wait()
	s.background.Wait()
	s.check(v, 3*each*rounds+3+3*lateCallers)
	for _, err := range v.told {
		told[outcome.Of(err)]++
	}
}

// heal ends the trouble.
func (s *simulation) heal() {
	s.mu.Lock()
	s.faults = faults{}
	s.mu.Unlock()
	time.Sleep(5 * time.Second) // until the disturbances in flight are over
	s.elect(s.nodes[0])
	for _, n := range s.nodes {
		n.gatherer.SetQuorum(true)
	}
}

// afterwards checks that every node works again.
func (s *simulation) afterwards(v *outcomes) {
	time.Sleep(5 * time.Second)
	for _, n := range s.nodes {
		operation := n.name + " afterwards"
		s.call(v, n, operation, false)
		if err := v.told[operation]; err != nil {
			s.fault("node %s does not work afterwards: %v", n.name, err)
		}
	}
}

// lateCallers is how many callers each node has when it is closed.
const lateCallers = 8

// farewell starts callers that the end comes upon.
func (s *simulation) farewell(v *outcomes) *sync.WaitGroup {
	var all sync.WaitGroup
	for _, n := range s.nodes {
		for c := range lateCallers {
			all.Go(func() { s.call(v, n, fmt.Sprintf("%s late %d", n.name, c), false) })
		}
	}
	return &all
}

// close closes everything, with too little time for some.
func (s *simulation) close() {
	ctx, cancel := context.WithTimeout(context.Background(), s.between(0, 50*time.Millisecond))
	defer cancel()
	time.Sleep(s.between(0, 5*time.Millisecond))
	for _, n := range s.nodes {
		n.gatherer.Close(ctx)
	}
	for _, n := range s.nodes {
		n.batcher.Close(ctx)
		n.stepDown()
	}
}

// TestEveryCallerIsToldTheTruth is the whole promise of the package under
// random faults: each operation is applied at most once, each caller is
// answered once and in time, a result means applied, NotApplied means never.
func TestEveryCallerIsToldTheTruth(t *testing.T) {
	told := make(tally)
	rapid.Check(t, func(rt *rapid.T) {
		percent := rapid.IntRange(0, 30)
		f := faults{
			refuse: percent.Draw(rt, "refuse"), drop: percent.Draw(rt, "drop"), repeat: percent.Draw(rt, "repeat"),
			loseAnswer: percent.Draw(rt, "loseAnswer"), hang: rapid.IntRange(0, 10).Draw(rt, "hang"),
			entryLost: percent.Draw(rt, "entryLost"), entryLate: percent.Draw(rt, "entryLate"), entryRefused: percent.Draw(rt, "entryRefused"),
			shortDeadline: rapid.IntRange(0, 100).Draw(rt, "shortDeadline"), steps: rapid.IntRange(0, 20).Draw(rt, "steps"),
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		var found []string
		synctest.Test(t, func(t *testing.T) {
			s := newSimulation(t, f, seed)
			s.run(f, told)
			found = s.found
		})
		if len(found) > 0 {
			rt.Fatalf("%s", strings.Join(found, "\n"))
		}
	})
	t.Log(told)
	if told[outcome.Applied] == 0 || told[outcome.Unknown] == 0 || told[outcome.NotApplied] == 0 {
		t.Error("the simulation does not reach every outcome")
	}
}
