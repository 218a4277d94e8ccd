package exploration

import (
	"fmt"
	"slices"
)

// clash says why the effect of a call cannot be, after those that came before it.
func (m *machine) clash(s *machineState, call uint8) string {
	now, g := m.calls[call], m.gains[s.took[call]]
	if now.kind == takeAllotted && (g.low < from1 || to1 < g.low && g.low < from2 || to2 < g.low || g.low <= to1 && now.at >= day) {
		return fmt.Sprintf("a number comes that no range has on that day: %s gets %s", now.name, g.text(now.kind))
	}
	for i, id := range s.took {
		if id == 0 || i == int(call) {
			continue
		}
		before, had := m.calls[i], m.gains[id]
		wrong := clashOfBills(before, now, had.low, g.low)
		switch {
		case wrong != "":
		case before.kind == identityNext && now.kind == identityNext && overlap(had, g):
			wrong = "an identity value comes twice"
		case before.kind == hiloNext && now.kind == hiloNext && overlap(m.inUse(s, i), g):
			wrong = "a number of a range in use comes again"
		case before.kind == merge && (now.kind == identityNext || now.kind == hiloNext) && g.low <= merged:
			wrong = "a number comes that a merge says is taken"
		case before.kind == claim && (now.kind == claim || now.kind == identityNext && g.low == 1) && !m.released(s, had):
			wrong = "a claimed id is given again"
		case before.kind == takeNumber && now.kind == takeNumber && overlap(m.inUse(s, i), g) != (before.document == now.document):
			wrong = "two documents have one number, or one has two"
		case now.kind == takeNumber && g.low <= leftOpen:
			wrong = "a number comes that a document may have since before a restore"
		case now.kind == takeNumber && now.number == 0 && g.low > m.highest(s, call)+1:
			wrong = "a number comes above one that nobody has"
		case before.number > g.low && now.kind == takeNumber && !m.had(s, call):
			wrong = "a number comes that another one has passed over"
		case before.leases() && now.leases() && m.owner(i) != m.owner(int(call)) && overlap(m.usable(s, i), g):
			wrong = "a time of a worker is leased twice"
		case before.kind == identityNext && now.kind == claim && had.low == 1:
			wrong = "an id that an identity gave is claimed"
		}
		if wrong != "" {
			return fmt.Sprintf("%s: %s got %s, and %s gets %s", wrong, before.name, had.text(before.kind), now.name, g.text(now.kind))
		}
	}
	return ""
}

// clashOfBills says why calls on a series of ranges cannot be, one after the other: of each that took a number, it is given.
func clashOfBills(before, now call, had, gets int64) string {
	gave := before.kind == takeAllotted
	switch now.kind {
	case takeAllotted:
		switch {
		case gave && had == gets:
			return "two documents have one number"
		case gave && had >= from2 && gets <= to1:
			return "a range goes on after another one has begun"
		case before.kind == withdraw && gets >= from2:
			return "a range gives numbers that was taken back"
		case before.kind == mergeBackup && gets <= slices.Max(backups[before.backup]):
			return "a number comes that is used, or past, in a merged backup"
		}
	case withdraw:
		if gave && had >= from2 {
			return "a range is taken back that gave a number"
		}
	case mergeBackup:
		if gave && slices.Contains(backups[now.backup], had) {
			return "a backup is merged in which another document has a number"
		}
	}
	return ""
}

// inUse is what a range's owner may have used: it gives back all of it, or nothing.
func (m *machine) inUse(s *machineState, owner int) gain {
	for i, id := range s.took {
		if id == 0 || m.gains[id].low == 0 || int(m.calls[i].follows) != 1+owner {
			continue
		}
		if k := m.calls[i].kind; k == hiloReturn || k == highReturn || k == giveBack {
			return gain{}
		}
	}
	return m.gains[s.took[owner]]
}

// leases reports whether a call gives times of a worker.
func (c call) leases() bool { return c.kind == lease || c.kind == renew }

// owner is the call that leased what a call is about.
func (m *machine) owner(call int) int {
	if m.calls[call].kind == lease {
		return call
	}
	return int(m.calls[call].follows) - 1
}

// usable is what the holder of a lease may use.
func (m *machine) usable(s *machineState, of int) gain {
	w := m.gains[s.took[of]]
	for i, id := range s.took {
		if id != 0 && m.calls[i].kind == free && m.owner(i) == m.owner(of) {
			w.high = w.low + used - 1
		}
	}
	return w
}

// highest is the highest number that documents got by other calls, or that the books began with.
func (m *machine) highest(s *machineState, call uint8) int64 {
	highest := int64(leftOpen)
	for i, id := range s.took {
		if id != 0 && i != int(call) && m.calls[i].kind == takeNumber {
			highest = max(highest, m.gains[id].low)
		}
	}
	return highest
}

// had reports whether the document of a call got its number by another call.
func (m *machine) had(s *machineState, call uint8) bool {
	for i, id := range s.took {
		if id != 0 && i != int(call) && m.calls[i].document == m.calls[call].document {
			return true
		}
	}
	return false
}

// released reports whether a claim was released after it was made.
func (m *machine) released(s *machineState, claimed gain) bool {
	for i, id := range s.took {
		if id != 0 && m.calls[i].kind == release && m.gains[id].index > claimed.index {
			return true
		}
	}
	return false
}

func overlap(a, b gain) bool { return a.low <= b.high && b.low <= a.high && a.high > 0 && b.high > 0 }

// judge looks for what must not be in a world.
func (x *explorer) judge(w *world) {
	for m := range w.members {
		s := &x.machine.states[w.members[m].state]
		if s.twice != "" {
			x.fail("%s", s.twice)
		}
		for i, id := range s.took {
			if id != 0 && w.calls[i].status == notApplied {
				x.fail("%s was told that it was not applied, and it is, at log index %d", x.scenario.calls[i].name, x.machine.gains[id].index)
			}
		}
	}
	for i := range w.calls {
		x.judgeAnswer(w, i)
	}
}

// judgeEffect finds an answer to a call that has not taken effect in the state that
// answers.
func (x *explorer) judgeEffect(call uint8, err error, at stateID, got gainID) {
	if err != nil || x.machine.gains[got].refused != 0 {
		return
	}
	c := x.scenario.calls[call]
	for i, id := range x.machine.states[at].took {
		if id == got && x.scenario.calls[i].who == c.who {
			return
		}
	}
	x.fail("%s gets %s, which is the answer to another call", c.name, x.machine.gains[got].text(c.kind))
}

// judgeAnswer compares an answer with those to the same request, and with what has
// happened.
func (x *explorer) judgeAnswer(w *world, i int) {
	if w.calls[i].status != answered {
		return
	}
	got := x.machine.gains[w.calls[i].got]
	for m := range w.members {
		s := &x.machine.states[w.members[m].state]
		for j, id := range s.took {
			if id != 0 && x.scenario.calls[j].who == x.scenario.calls[i].who && got.refused == 0 && id != w.calls[i].got {
				x.fail("%s got %s at log index %d, and took effect as %s at %d", x.scenario.calls[i].name,
					got.text(x.scenario.calls[i].kind), got.index, x.machine.gains[id].text(x.scenario.calls[i].kind), x.machine.gains[id].index)
			}
		}
	}
	for j := range i {
		if w.calls[j].status != answered || x.scenario.calls[j].who != x.scenario.calls[i].who {
			continue
		}
		if other := x.machine.gains[w.calls[j].got]; other.refused == 0 && got.refused == 0 && other != got {
			x.fail("two answers to one request: %s got %s, and %s got %s", x.scenario.calls[j].name,
				other.text(x.scenario.calls[j].kind), x.scenario.calls[i].name, got.text(x.scenario.calls[i].kind))
		}
	}
}

// text is an answer in words.
func (g gain) text(k kind) string {
	switch {
	case g.refused != 0:
		return "the refusal " + g.refused.String()
	case k == identityNext:
		return fmt.Sprintf("%s/%d", name, g.low)
	case k == takeNumber, k == takeAllotted:
		return fmt.Sprintf("number %d", g.low)
	case k == lease, k == renew:
		return fmt.Sprintf("times %d to %d", g.low, g.high)
	case k == hiloNext:
		return fmt.Sprintf("%d to %d", g.low, g.high)
	case g.low == 0:
		return "that nothing was done"
	default:
		return "that it is done"
	}
}
