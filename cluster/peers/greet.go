package peers

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
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

// GreetDuty greets all members until each has accepted this process once: if this node's disk was
// set back, a member that has seen more of it refuses the greeting. It greets them again when there
// is no leader any more. Thus a node that was set back with its memory finds out: its connections
// no longer fit those of the others.
//
// Elections wait for members that have not answered for trustWait beyond the usual. begin
// starts a goroutine that ends with the node.
func GreetDuty(cfg Config, trustWait time.Duration, begin func(func(ctx context.Context))) duty.Duty {
	led := false
	toGreet := func() (left []raft.ServerID) {
		_, leader := cfg.Raft.LeaderWithID()
		led = led || leader != ""
		again := led && leader == ""
		for _, m := range cfg.Table.Refresh().Members {
			if id := member.ServerID(m.GetId()); !cfg.Configuration.HasLeft(m) && !cfg.Record.IsSelf(m) && (again || !cfg.Transport.Greeted(id)) {
				left = append(left, id)
			}
		}
		return left
	}
	maxPauses := greetPauses + int(trustWait/greetEvery)
	return greetDuty(toGreet, maxPauses, cfg.Transport.StopWaiting, func(id raft.ServerID, done func()) {
		begin(func(ctx context.Context) {
			defer done()
			_ = cfg.Transport.Greet(ctx, id) // It is tried again.
		})
	})
}

// greetDuty greets the members in left. No greeting waits for another. It calls stopWaiting
// once.
func greetDuty(left func() []raft.ServerID, maxPauses int, stopWaiting func(), greet func(id raft.ServerID, done func())) duty.Duty {
	var underWay sync.Map
	pauses, wait := 0, greetFirst/2
	pause := func() time.Duration {
		wait = min(2*wait, greetEvery)
		return wait
	}
	check := func(time.Time) duty.Task {
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
		pauses++
		return nil
	}
	return duty.Duty{Name: "greetings", Pause: pause, Check: check}
}
