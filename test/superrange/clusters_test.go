package superrange

import "fmt"

// home grants super-ranges, and gives numbers to callers of its own.
type home struct {
	state
	// epoch is part of its cluster id: each restore makes another.
	epoch int64
	// awaited are the children that must report before the home gives anything again.
	awaited map[*child]bool
	// backup is the newest number that a backup has.
	backup int64
}

func (w *world) homeServes() {
	if len(w.home.awaited) == 0 {
		w.give("home", w.home.take(1+w.random.Int64N(mostTaken), 0, ""))
	}
}

// grant answers a request of a child: the same for the same request id.
func (w *world) grant(m message) {
	if len(w.home.awaited) > 0 || m.epoch != w.home.epoch {
		return // The child asks again.
	}
	m.kind, m.granted = "grant", w.home.take(superSize, m.reached, m.id)
	w.grants[m.granted] = true
	w.sent = append(w.sent, m)
}

// restoreHome begins a new cluster with the counter of a backup. It knows neither grants
// nor request ids since. What it gave to callers of its own the operator makes up for by
// raising the counter; how far the grants reached it learns from the children.
func (w *world) restoreHome() {
	own := w.home.backup
	for n, who := range w.given {
		if who == "home" {
			own = max(own, n)
		}
	}
	w.home = home{state: newState(w.t), epoch: w.home.epoch + 1, backup: w.home.backup, awaited: map[*child]bool{}}
	w.home.raise(own, nil)
	for _, c := range w.children {
		if !w.faults.homeForgets {
			w.home.awaited[c] = true
		}
	}
}

// callForReports tells a child the home's epoch.
func (w *world) callForReports() {
	c := w.children[w.random.IntN(len(w.children))]
	w.sent = append(w.sent, message{kind: "call", child: c, epoch: w.home.epoch})
}

// reported takes in how far a child's grants reach.
func (w *world) reported(m message) {
	if m.epoch != w.home.epoch || !w.home.awaited[m.child] {
		return
	}
	if m.unsure { // The operator has to say how far.
		m.reached = w.newest()
	}
	w.home.raise(m.reached, nil)
	delete(w.home.awaited, m.child)
}

// child is a cluster of a region. Its log has the numbers given (the counter), the end of
// its super-range ("granted") and the epoch of the home whose grants it takes ("home").
// What is above the counter, up to granted, is its own.
type child struct {
	state
	region int
	// restores is how often it was restored; name is that of its cluster.
	restores int
	name     string
	cut      bool
	// pending is a grant that is not in the log yet, and retries counts requests. Both are
	// gone after a crash.
	pending *span
	retries int
	// backup and backupGranted are what a backup has.
	backup, backupGranted int64
}

func (c *child) rename() { c.name = fmt.Sprintf("region %d, cluster %d", c.region, c.restores) }

// serve gives a caller numbers of the super-range.
func (w *world) serve(c *child) {
	size := 1 + w.random.Int64N(mostTaken)
	if p := c.pending; p != nil {
		if w.faults.useUnlogged && p.low+size <= p.high {
			w.give(c.name, span{p.low, p.low + size - 1})
			p.low += size
			return
		}
		w.install(c)
		return
	}
	if left := c.record("granted") - c.max(); left > 0 {
		w.give(c.name, c.take(min(size, left), 0, ""))
	}
}

// install writes a grant into the child's log. Grants of one home rise, so one that is
// older than what the log has changes nothing.
func (w *world) install(c *child) {
	p := *c.pending
	c.pending = nil
	if p.low > c.record("granted") {
		w.installed[span{p.high - superSize + 1, p.high}] = true
	}
	c.raise(p.low-1, map[string]int64{"granted": p.high})
}

// ask asks for the next super-range. The request id is a function of the child's log, so
// it is the same after a crash and on another leader.
func (w *world) ask(c *child) {
	granted := c.record("granted")
	if granted > c.max() || c.pending != nil {
		return
	}
	m := message{kind: "request", child: c, name: c.name, epoch: c.record("home"), reached: max(granted, c.max())}
	m.id = fmt.Sprintf("%s, after %d", c.name, granted)
	if w.faults.newIDs {
		c.retries++
		m.id = fmt.Sprintf("%s, try %d", m.id, c.retries)
	}
	w.sent = append(w.sent, m)
}

// granted takes a grant of the home, if the child has not got one meanwhile.
func (w *world) granted(c *child, m message) {
	old := m.name != c.name || m.epoch != c.record("home")
	if old && !w.faults.takeOldAnswers || m.granted.low <= max(c.record("granted"), c.max()) || c.pending != nil {
		return
	}
	c.pending = &m.granted
}

// report answers the home. From then on, grants of an earlier epoch are void. A child that
// was restored does not know how far its grants reached, until it has a new one.
func (w *world) report(c *child, m message) {
	if m.epoch > c.record("home") {
		c.pending = nil
		c.raise(0, map[string]int64{"home": m.epoch})
	}
	granted := c.record("granted")
	w.sent = append(w.sent, message{
		kind: "report", child: c, epoch: m.epoch, reached: max(granted, c.max()), unsure: c.restores > 0 && granted == 0,
	})
}

// restoreChild begins a new cluster with the counter of a backup, and without a
// super-range: the one of the backup was used since, and is discarded.
func (w *world) restoreChild(c *child) {
	c.state, c.pending = newState(w.t), nil
	var records map[string]int64
	if w.faults.restoreGrants {
		records = map[string]int64{"granted": c.backupGranted}
	}
	c.raise(c.backup, records)
	c.restores++
	if !w.faults.keepName {
		c.rename()
	}
}
