package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/transport"
)

const (
	// greetFirst is the pause after the first greetings at the start, and grows up to
	// greetEvery. It is well below a heartbeat timeout: elections wait for greetings.
	greetFirst, greetEvery = 70 * time.Millisecond, time.Second
	// greetPauses is the number of pauses, 490 ms in total, after which elections no longer
	// wait for a member that has not answered. That is long for an answer, or for another
	// attempt after a refused connection. Pauses are counted, not time: messages that
	// arrive while this process is paused are read in the next one.
	greetPauses = 3
)

// pausesOf returns how many pauses elections wait for members that have not answered.
func pausesOf(c Config) int {
	if c.TrustData {
		return greetPauses + int(c.TrustWait/greetEvery)
	}
	return greetPauses
}

// greetMembers greets all members until each has accepted this process once: if this
// node's disk was set back, a member that knows refuses the greeting. It greets them again
// while there is no leader any more: that is how a node sees it that was set back with its
// memory, and whose connections no longer fit those of the others.
//
// Elections wait so many pauses for members that have not answered.
func greetMembers(ctx context.Context, c configuration, own *nodeRecord, t *transport.Transport, l *lifecycle, pauses int) {
	led := false
	toGreet := func() (left []raft.ServerID) {
		_, leader := c.raft.LeaderWithID()
		led = led || leader != ""
		again := led && leader == ""
		for _, m := range c.roster.refresh().members {
			if id := member.ServerID(m.GetId()); !c.left(m) && !own.isSelf(m) && (again || !t.Greeted(id)) {
				left = append(left, id)
			}
		}
		return left
	}
	greetAll(ctx, toGreet, pauses, t.StopWaiting, func(id raft.ServerID, done func()) {
		l.run(func(ctx context.Context) {
			defer done()
			_ = t.Greet(ctx, id) // It is tried again.
		})
	})
}

// greetAll greets the members in left until ctx ends. No greeting waits for another. It
// calls stopWaiting once.
func greetAll(ctx context.Context, left func() []raft.ServerID, maxPauses int, stopWaiting func(), greet func(id raft.ServerID, done func())) {
	var underWay sync.Map
	pauses := 0
	for pause := greetFirst; ctx.Err() == nil; pause = min(2*pause, greetEvery) {
		members := left()
		if pauses == maxPauses || pauses < maxPauses && len(members) == 0 {
			stopWaiting()
			pauses = maxPauses
		}
		for _, id := range members {
			if _, is := underWay.LoadOrStore(id, nil); !is {
				greet(id, func() { underWay.Delete(id) })
			}
		}
		sleep(ctx, pause)
		pauses++
	}
}
