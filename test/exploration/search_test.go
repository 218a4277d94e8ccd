package exploration

import (
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/idnode/idnode/test/model"
)

// explorer explores one scenario.
type explorer struct {
	scenario scenario
	machine  *machine
	sessions numbers[commitSession]
	groups   numbers[commitGroup]
	// found is what must not happen, and did in the newest step.
	found string

	seen seen
	// before and by have, of each world, the number of the one that it was first reached
	// from, and which of its steps that was.
	before []uint32
	by     []uint8
	// most bounds the worlds, and so the memory; full says that there was one more.
	most int
	full bool
}

// report is what an exploration has found.
type report struct {
	worlds int
	states int // of the replicated state
	depth  int
	took   time.Duration
	// whole says that nothing is left to explore. Otherwise the worlds of the last depth
	// are not all there.
	whole bool
	// wrong is what must not happen, with the shortest story that leads to it.
	wrong string
}

func (r report) String() string {
	whole := ""
	if !r.whole {
		whole = ", stopped within the last depth"
	}
	return fmt.Sprintf("%d worlds with %d states of the machine, depth %d, %s%s", r.worlds, r.states, r.depth,
		r.took.Round(100*time.Millisecond), whole)
}

func newExplorer(s scenario) *explorer {
	return &explorer{scenario: s, machine: newMachine(s), sessions: newNumbers[commitSession](), groups: newNumbers[commitGroup]()}
}

// first returns the world in which all begins: A leads, and all know it. The only call of a
// node is made already: that it is made later is the same as that its queue is cut later.
func (x *explorer) first() world {
	w := world{term: 1, budget: x.scenario.budget}
	for m := range w.members {
		w.members[m] = member{state: genesis, snapshot: genesis, Member: model.Member[uint8]{Term: 1, Leads: m == 0}}
	}
	for o := range w.nodes {
		w.nodes[o] = node{hint: 1, session: x.sessions.number(newSession(o)), starts: 1}
	}
	for i, c := range x.scenario.calls {
		if c.follows == 0 && c.request == 0 && x.scenario.alone(c.node) {
			x.propose(&w, i)
		}
	}
	return w
}

// explore explores all worlds, or as many as most.
func (x *explorer) explore(most int) report {
	began := time.Now()
	first := x.first()
	x.seen.add(first.hash())
	x.before, x.by = []uint32{0}, []uint8{0}
	x.most = most
	level := []reached{{first, 0}}
	r := report{}
	for len(level) > 0 && r.wrong == "" && !x.full {
		level, r.wrong = x.next(level)
		r.depth++
	}
	r.worlds, r.states, r.took = len(x.before), len(x.machine.states), time.Since(began)
	r.whole = !x.full
	return r
}

// reached is a world and its number.
type reached struct {
	world
	number uint32
}

// next returns the worlds that are one step further, or what is wrong.
func (x *explorer) next(level []reached) (further []reached, wrong string) {
	for i := range level {
		at := &level[i]
		step, onward := uint8(0), false
		x.steps(&at.world, func(next *world, fault bool, story func() string) {
			onward = onward || !fault && *next != at.world
			if wrong == "" {
				further, wrong = x.visit(further, at.number, step, next)
			}
			step++
			if step == 0 {
				panic("too many steps for their numbers")
			}
		})
		if wrong == "" && !onward {
			x.judgeEnd(&at.world)
			wrong = x.wrong(at.number, -1)
		}
		if wrong != "" || x.full {
			return nil, wrong
		}
	}
	return further, ""
}

// visit takes in the world after a step.
func (x *explorer) visit(further []reached, from uint32, step uint8, next *world) ([]reached, string) {
	if x.full || x.found == "" && !x.seen.add(next.hash()) {
		return further, ""
	}
	x.judge(next)
	if x.found != "" {
		return nil, x.wrong(from, int(step))
	}
	if len(x.before) == x.most {
		x.full = true
		return further, ""
	}
	number := uint32(len(x.before))
	x.before, x.by = append(x.before, from), append(x.by, step)
	return append(further, reached{*next, number}), ""
}

// judgeEnd looks for calls without an answer where nothing can happen but faults.
func (x *explorer) judgeEnd(w *world) {
	for i, c := range w.calls {
		if c.status == open {
			x.fail("no way leads to an answer: %s", x.scenario.calls[i].name)
		}
	}
}

// wrong tells what was found, and the steps to it: those that lead to a world, and one
// more, if there is one.
func (x *explorer) wrong(number uint32, last int) string {
	found := x.found
	if found == "" {
		return ""
	}
	var path []int
	if last >= 0 {
		path = append(path, last)
	}
	for ; number != 0; number = x.before[number] {
		path = append(path, int(x.by[number]))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", found)
	w := x.first()
	for i := len(path) - 1; i >= 0; i-- {
		step, after := 0, world{}
		x.steps(&w, func(next *world, _ bool, story func() string) {
			if step == path[i] {
				fmt.Fprintf(&b, "%4d  %s\n", len(path)-i, story())
				after = *next
			}
			step++
		})
		fmt.Fprint(&b, x.told(&w, &after))
		w = after
	}
	return b.String()
}

// told says which calls a step has ended.
func (x *explorer) told(before, after *world) string {
	text := ""
	for i, c := range after.calls {
		if c.status == before.calls[i].status || c.status == open {
			continue
		}
		said := map[status]string{
			answered: "gets " + x.machine.gains[c.got].text(x.scenario.calls[i].kind), notApplied: "is told: not applied",
			unknown: "is told: outcome unknown",
		}[c.status]
		text += fmt.Sprintf("      → %s %s\n", x.scenario.calls[i].name, said)
	}
	return text
}

// seen is a set of hashes.
type seen struct {
	slots []uint64
	count int
}

// add adds a hash, and reports whether it is new.
func (s *seen) add(hash uint64) bool {
	if 4*s.count >= 3*len(s.slots) {
		s.grow()
	}
	hash = max(hash, 1)
	at := hash & uint64(len(s.slots)-1)
	for s.slots[at] != 0 {
		if s.slots[at] == hash {
			return false
		}
		at = (at + 1) & uint64(len(s.slots)-1)
	}
	s.slots[at] = hash
	s.count++
	return true
}

func (s *seen) grow() {
	old := s.slots
	s.slots, s.count = make([]uint64, max(1<<16, 2*len(old))), 0
	for _, hash := range old {
		if hash != 0 {
			s.add(hash)
		}
	}
}

// worldBytes is how much one world takes.
const worldBytes = unsafe.Sizeof(world{})
