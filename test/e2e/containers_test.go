package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/history/check"
	"github.com/idnode/idnode/test/tier"
)

const (
	// containerFaults is how many faults the short form has at least.
	containerFaults = 20
	// containerDeadline is that of the callers: nothing else ends a call to a
	// container that is silent.
	containerDeadline = 2 * time.Second
)

// containerFault breaks one container, and returns what ends that.
type containerFault struct {
	name  string
	share int
	begin func(t *testing.T, k *harness.Contained, n *harness.Container) (end func())
}

var containerFaultKinds = []containerFault{
	{"disconnect", 4, func(t *testing.T, k *harness.Contained, n *harness.Container) func() {
		k.Cut(t, n)
		return func() { k.Mend(t, n) }
	}},
	{"pause", 3, func(t *testing.T, _ *harness.Contained, n *harness.Container) func() {
		n.Pause(t)
		return func() { n.Unpause(t) }
	}},
	{"kill", 3, func(t *testing.T, k *harness.Contained, n *harness.Container) func() {
		n.Kill(t)
		return func() { startedAgain(t, k, n) }
	}},
	{"stop", 1, func(t *testing.T, k *harness.Contained, n *harness.Container) func() {
		n.Stop(t)
		return func() { startedAgain(t, k, n) }
	}},
	{"restart", 1, func(t *testing.T, k *harness.Contained, n *harness.Container) func() {
		n.Restart(t)
		return func() { k.Moved(t, n) }
	}},
}

func startedAgain(t *testing.T, k *harness.Contained, n *harness.Container) {
	t.Helper()
	n.StartAgain(t)
	k.Moved(t, n)
}

// TestContainersMixture draws faults of the containers, leader or not, and their
// times from the seed, under traffic on all of them. Each fault begins when the
// majority serves, and the container before it need not yet. Now and then all must
// serve. IDNODE_E2E_CONTAINERS says for how long in place of the short form.
func TestContainersMixture(t *testing.T) {
	tier.Long(t)
	length := time.Duration(0)
	if text := os.Getenv("IDNODE_E2E_CONTAINERS"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	c := harness.StartCompose(t)
	var report *check.Report
	k := c.Record(t, containerDeadline, func(r *check.Report) { report = r })
	random := k.Random(0)
	k.Traffic.Thick(t)
	m := &containerMixture{Contained: k, c: c, random: random, counts: map[string]int{}}
	for begin := time.Now(); !t.Failed() && (m.faults < containerFaults || time.Since(begin) < length); {
		m.one(t)
		if m.faults%10 == 0 {
			k.Heal(t)
			k.Traffic.Thick(t)
		}
	}
	k.Ends(t)
	t.Log(m.summary(report))
}

// containerMixture counts what was done.
type containerMixture struct {
	*harness.Contained
	c      *harness.Compose
	random *rand.Rand

	faults, leaders int
	counts          map[string]int
	gaps            []time.Duration
}

// one breaks a container, waits until another serves, and ends the fault.
func (m *containerMixture) one(t *testing.T) {
	t.Helper()
	f, n := m.draw(), m.c.Containers[m.random.IntN(3)]
	// Half of the faults hit the leader.
	if leader := m.LeaderSeen(t); leader != nil && m.random.IntN(2) == 0 {
		n = leader
		m.leaders++
	}
	m.faults++
	m.counts[f.name]++
	others := slices.DeleteFunc(slices.Clone(m.c.Containers), func(o *harness.Container) bool { return o == n })
	end := f.begin(t, m.Contained, n)
	m.gaps = append(m.gaps, m.Traffic.Probe(t, others[m.random.IntN(2)].Node))
	<-time.After(m.length()) // A fault lasts by its nature.
	end()
}

func (m *containerMixture) draw() containerFault {
	all := 0
	for _, f := range containerFaultKinds {
		all += f.share
	}
	n := m.random.IntN(all)
	for _, f := range containerFaultKinds {
		if n -= f.share; n < 0 {
			return f
		}
	}
	panic("not reached")
}

// length is how long a fault goes on after the others serve: mostly short, and up
// to ten seconds in a long run.
func (m *containerMixture) length() time.Duration {
	longest := 300 * time.Millisecond
	if os.Getenv("IDNODE_E2E_CONTAINERS") != "" && m.random.IntN(4) == 0 {
		longest = 10 * time.Second
	}
	return time.Duration(m.random.Int64N(int64(longest)))
}

func (m *containerMixture) summary(r *check.Report) string {
	var parts []string
	for _, f := range containerFaultKinds {
		parts = append(parts, fmt.Sprintf("%d %s", m.counts[f.name], f.name))
	}
	slices.Sort(m.gaps)
	ids := int64(0)
	if r != nil {
		ids = int64(r.Identities + r.HiLoUsed + r.Etags)
	}
	return fmt.Sprintf("%d faults (%s), %d of them to the leader; %d ids; another container served again after p50 %s, max %s",
		m.faults, strings.Join(parts, ", "), m.leaders, ids,
		m.gaps[len(m.gaps)/2].Round(time.Millisecond), m.gaps[len(m.gaps)-1].Round(time.Millisecond))
}
