package simulation

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster"
)

// longestDelay bounds what a slow disk, a slow network or a slow installation of a
// snapshot adds.
const longestDelay = time.Second

// slowness says how often what is quick takes long. Most delays are of some
// milliseconds, and each further tenfold is as likely as the last: a second is
// seldom, but comes on one node while the others are quick.
type slowness struct {
	// disk is the share of syncs, network that of writes to a connection.
	disk, network float64
	// terms has the first entry of a term written slowly, on one node or another, and
	// installs has snapshots installed slowly.
	terms, installs bool
}

func drawSlowness(r *rand.Rand) slowness {
	return slowness{
		disk: pick(r, 0, 0, 0.01, 0.1), network: pick(r, 0, 0, 0.001, 0.01),
		terms: r.IntN(3) == 0, installs: r.IntN(4) == 0,
	}
}

// delay draws how long something slow takes.
func delay(r *rand.Rand) time.Duration {
	return time.Duration(float64(time.Millisecond) * math.Pow(float64(longestDelay/time.Millisecond), r.Float64()))
}

// linger takes the time of something slow, one time of two, however long up to
// longestDelay. After the faults nothing is slow.
func (s *session) linger() {
	s.disk.mu.Lock()
	d := time.Duration(0)
	if !s.disk.quick && s.disk.random.IntN(2) == 0 {
		d = time.Duration(s.disk.random.Int64N(int64(longestDelay)))
	}
	s.disk.takes(d)
	s.disk.mu.Unlock()
	time.Sleep(d)
}

// hurry ends all slowness.
func (d *disk) hurry() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quick = true
}

// begins says whether entries begin a term.
func begins(logs []*raft.Log) bool {
	return slices.ContainsFunc(logs, func(l *raft.Log) bool { return l.Type == raft.LogNoop })
}

// slowTerms is a store that is slow to write the first entry of a term.
type slowTerms struct {
	cluster.Store
	session *session
}

// StoreLog implements raft.LogStore.
func (s slowTerms) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore.
func (s slowTerms) StoreLogs(logs []*raft.Log) error {
	if begins(logs) {
		s.session.linger()
	}
	return s.Store.StoreLogs(logs)
}
