package exploration

import (
	"bytes"
	"fmt"
	"time"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/test/model"
)

// stateID, contentID and gainID number states, entries and answers. Content 0 is the
// entry with which a leader's term begins; gain 0 is no answer.
type (
	stateID   uint16
	contentID uint16
	gainID    uint8
)

// machine is the replicated state as a function: it knows what each entry makes of each
// state. fsm computes it, once for each pair.
type machine struct {
	scenario
	states   []machineState
	byKey    map[string]stateID
	contents []content
	byParts  map[parts]contentID
	gains    []gain
	byGain   map[gain]gainID
	applied  map[applyKey]applyValue
	restored map[installKey]stateID
	// recovered is the cluster after a recovery, and leap how far its log's index leaps.
	recovered []byte
	leap      uint64
}

// machineState is one state, and how it comes about: an entry that is applied to another
// state, a snapshot that is installed, or a recovery.
type machineState struct {
	before   stateID
	entry    contentID
	snapshot stateID
	recovers bool
	index    uint64
	hash     uint64
	// took is, by call, how its operation took effect there; gained is what it gave, and
	// twice says that it took effect again.
	took  [maxCalls]gainID
	twice string
	// sessions are what the model says of groups.
	sessions model.Sessions
}

// genesis is the state in which each world begins; fresh is that of a process that has
// just started. Both have no state before them.
const (
	fresh   stateID = 0
	genesis stateID = 1
)

type applyKey struct {
	before stateID
	entry  contentID
}

type applyValue struct {
	after  stateID
	status raftlog.Status
	gains  [maxCalls]gainID // by operation
}

type installKey struct{ before, snapshot stateID }

// content is an entry: one group, and whose operations it has.
type content struct {
	parts
	entry []byte
}

// parts are what an entry consists of.
type parts struct {
	message  groupNumbers
	origin   uint8 // 1 + the node
	announce uint8 // the number of the start that is announced; 0 if none is
	calls    [maxCalls]said
	// recovered says that it is of the cluster after a recovery.
	recovered bool
}

// groupNumbers are those of a raftlog.Group.
type groupNumbers struct{ session, sequence, acknowledged uint64 }

// said is an operation as it was proposed.
type said struct {
	call  uint8  // 1 + its number
	since uint8  // how far its caller or its node had seen the log
	about gainID // what the call before gave, which this one is about
}

// gain is the answer to one operation.
type gain struct {
	index   uint64
	refused raftlogv1.RefusalReason
	// low and high are values or a range; low is 1 for what was done, and 0 for what was
	// not possible.
	low, high int64
}

func newMachine(s scenario) *machine {
	m := &machine{
		scenario: s,
		byKey:    map[string]stateID{}, byParts: map[parts]contentID{}, byGain: map[gain]gainID{},
		applied: map[applyKey]applyValue{}, restored: map[installKey]stateID{},
		contents: make([]content, 1), gains: make([]gain, 1),
	}
	m.states = make([]machineState, 2)
	live := m.live(genesis)
	m.states[genesis].index, m.states[genesis].hash = live.Hash()
	for node := range members {
		m.states[genesis].sessions.Open(nodeID(node), sessionOf(node))
	}
	m.byKey[key(live, &m.states[genesis])] = genesis
	return m
}

// live returns a fsm.State in a state, by doing what leads to it.
func (m *machine) live(id stateID) *fsm.State {
	switch s := &m.states[id]; {
	case id == fresh:
		return fsm.New(fsm.Config{})
	case id == genesis:
		return newGenesis(m.scenario)
	case s.recovers:
		live := m.live(s.before)
		m.recover(live)
		return live
	case s.snapshot != 0:
		live := m.live(s.before)
		if err := live.Restore(bytes.NewReader(snapshot(m.live(s.snapshot)))); err != nil {
			panic(err)
		}
		return live
	default:
		live := m.live(s.before)
		m.run(live, s.entry)
		return live
	}
}

// run applies an entry.
func (m *machine) run(live *fsm.State, entry contentID) raftlog.GroupResult {
	index := live.AppliedIndex() + 1
	if entry == 0 {
		live.Skip(index)
		return raftlog.GroupResult{}
	}
	results, err := live.Apply(index, m.contents[entry].entry)
	if err != nil || len(results) != 1 {
		panic(fmt.Sprintf("%d results, %v", len(results), err))
	}
	return results[0]
}

// apply returns what an entry makes of a state.
func (m *machine) apply(before stateID, entry contentID) applyValue {
	k := applyKey{before, entry}
	if v, known := m.applied[k]; known {
		return v
	}
	live := m.live(before)
	result := m.run(live, entry)
	after := m.states[before]
	after.before, after.entry, after.snapshot, after.recovers = before, entry, 0, false
	v := applyValue{status: result.Status}
	for i, r := range result.Results {
		v.gains[i] = m.gain(r)
		if said := m.contents[entry].calls[i]; said.call > 0 {
			after.effect(m, said.call-1, v.gains[i], live.AppliedIndex())
		}
	}
	if entry != 0 {
		after.answer(m, entry, result, live.AppliedIndex())
	}
	v.after = m.intern(live, after)
	m.applied[k] = v
	return v
}

// install returns the state of a member that restores a snapshot.
func (m *machine) install(before, from stateID) stateID {
	k := installKey{before, from}
	if id, known := m.restored[k]; known {
		return id
	}
	after := m.states[from]
	after.before, after.snapshot, after.entry, after.recovers = before, from, 0, false
	live := m.live(before)
	if err := live.Restore(bytes.NewReader(snapshot(m.live(from)))); err != nil {
		panic(err)
	}
	id := m.intern(live, after)
	m.restored[k] = id
	return id
}

// recoveredFrom returns the state of a cluster that goes on from a member's state alone.
func (m *machine) recoveredFrom(before stateID) stateID {
	live := m.live(before)
	m.recover(live)
	after := m.states[before]
	after.before, after.snapshot, after.entry, after.recovers = before, 0, 0, true
	after.sessions = model.Sessions{}
	m.leap = live.AppliedIndex() - m.states[before].index
	return m.intern(live, after)
}

// recover skips more than any world takes. The new cluster's id is the same for all states.
func (m *machine) recover(live *fsm.State) {
	done, err := live.Recover(fsm.Recovery{Keep: []string{memberName(0), memberName(1), memberName(2)}, SkipAhead: 1000})
	if err != nil {
		panic(err)
	}
	m.recovered = done.ClusterID
}

// anew marks a place in the log of a recovered cluster.
const anew = 1 << 7

// sinceIndex is the log index of a place as callers see it.
func (m *machine) sinceIndex(since uint8) uint64 {
	if since&anew != 0 {
		return m.leap + uint64(since&^anew)
	}
	return uint64(since)
}

// place is a log index as few bits.
func (m *machine) place(index uint64) uint8 {
	if m.leap > 0 && index >= m.leap {
		return anew | uint8(index-m.leap)
	}
	return uint8(index)
}

// intern numbers a state. States are one if their snapshots are, and what they did; one
// that a snapshot gave stays another than one that entries gave.
func (m *machine) intern(live *fsm.State, s machineState) stateID {
	s.index, s.hash = live.Hash()
	k := key(live, &s)
	id, known := m.byKey[k]
	if !known {
		if len(m.states) > 1<<16-1 {
			panic("too many states for their numbers")
		}
		id = stateID(len(m.states))
		m.states = append(m.states, s)
		m.byKey[k] = id
	}
	return id
}

func key(live *fsm.State, s *machineState) string {
	return fmt.Sprint(s.took, s.twice, s.snapshot != 0) + string(snapshot(live))
}

func snapshot(live *fsm.State) []byte {
	var b bytes.Buffer
	if _, err := live.Snapshot().WriteTo(&b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// gain numbers an answer.
func (m *machine) gain(result []byte) gainID {
	var g gain
	switch r, err := op.DecodeResult(result); {
	case op.RefusalOf(err) != nil:
		g.refused = op.RefusalOf(err).GetReason()
	case err != nil:
		panic(err)
	default:
		g = gainOf(r)
	}
	id, known := m.byGain[g]
	if !known {
		if len(m.gains) > 1<<8-1 {
			panic("too many answers for their numbers")
		}
		id = gainID(len(m.gains))
		m.gains = append(m.gains, g)
		m.byGain[g] = id
	}
	return id
}

func gainOf(r *raftlogv1.Result) gain {
	g := gain{index: r.GetLogIndex(), low: 1, high: 1}
	switch {
	case r.GetIdentityNext() != nil:
		values := r.GetIdentityNext().GetValues()[0]
		g.low, g.high = values.GetFirst(), max(values.GetFirst(), values.GetLast())
	case r.GetHiloNext() != nil:
		g.low, g.high = r.GetHiloNext().GetLow(), r.GetHiloNext().GetHigh()
	case r.GetSeriesNumbers() != nil:
		g.low = r.GetSeriesNumbers().GetNumbers()[0].GetNumber()
		g.high = g.low
	case r.GetWorkerLease() != nil:
		g.low, g.high = r.GetWorkerLease().GetFrom(), r.GetWorkerLease().GetUntil()-1
	case r.GetHiloReturn() != nil && !r.GetHiloReturn().GetReturned():
		g.low, g.high = 0, 0
	}
	return g
}

// content numbers an entry.
func (m *machine) content(p parts) contentID {
	id, known := m.byParts[p]
	if !known {
		if len(m.contents) > 1<<16-1 {
			panic("too many entries for their numbers")
		}
		id = contentID(len(m.contents))
		m.contents = append(m.contents, content{parts: p, entry: m.encode(p)})
		m.byParts[p] = id
	}
	return id
}

// encode returns an entry with one group.
func (m *machine) encode(p parts) []byte {
	g := raftlog.Group{Session: p.message.session, Sequence: p.message.sequence, Acknowledged: p.message.acknowledged}
	if p.announce > 0 {
		g.Operations = [][]byte{announcement(int(p.origin-1), uint64(p.announce))}
		return m.newEntry(p, 0, g)
	}
	g.Origin = nodeID(int(p.origin - 1))
	var at time.Duration
	for _, said := range p.calls {
		if said.call > 0 {
			at = max(at, m.calls[said.call-1].at)
			g.Operations = append(g.Operations, m.calls[said.call-1].operation(m, said))
		}
	}
	return m.newEntry(p, at, g)
}

func (m *machine) newEntry(p parts, at time.Duration, g raftlog.Group) []byte {
	if p.recovered {
		return newEntry(m.recovered, at, g)
	}
	return newEntry(clusterID, at, g)
}

// answer has the model judge what the state answers to an entry.
func (s *machineState) answer(m *machine, entry contentID, result raftlog.GroupResult, index uint64) {
	c := &m.contents[entry]
	decoded, err := raftlog.DecodeEntry(c.entry, raftlog.FormatVersion)
	if err != nil {
		panic(err)
	}
	s.sessions = s.sessions.Clone()
	effect, err := s.sessions.Answer(index, decoded.Groups[0], result)
	switch {
	case err != nil && s.twice == "":
		s.twice = err.Error()
	case effect && c.announce > 0:
		s.sessions.Open(nodeID(int(c.origin-1)), index)
	}
}

// effect notes that the operation of a call was answered at an index. It took effect
// there if it was not refused and the answer is not a remembered one.
func (s *machineState) effect(m *machine, call uint8, id gainID, index uint64) {
	g := m.gains[id]
	if g.refused != 0 || g.index != index {
		return
	}
	for other, had := range s.took {
		if had != 0 && s.twice == "" && m.calls[other].who == m.calls[call].who {
			s.twice = fmt.Sprintf("%s takes effect at log index %d, and %s did at %d",
				m.calls[call].name, index, m.calls[other].name, m.gains[had].index)
		}
	}
	s.took[call] = id
	if s.twice == "" {
		s.twice = m.clash(s, call)
	}
}
