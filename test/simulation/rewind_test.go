package simulation

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/idnode/idnode/cluster/member"
)

// drawRewinds draws whole directories that are set back. All other nodes are up and
// hear of each other in time: a member that is paused, or down for long, cannot say
// what it has seen, and what then remains possible nobody can judge.
func (p *plan) drawRewinds(r *rand.Rand) {
	p.rewinds, p.nodes, p.faults, p.calm = true, pick(r, 3, 3, 5), []fault{leaderTransfers, resets}, 800*time.Millisecond
	p.crowd, p.churn, p.hungry, p.slow = 0, false, false, slowness{}
	p.length, p.startWait = 6*time.Second, time.Hour
	p.jitter, p.diskLatency = min(p.jitter, time.Millisecond), min(p.diskLatency, time.Millisecond)
}

// keyStarts is where the store has the number of the node's starts.
const keyStarts = "IdnodeStarts"

// lost is how many entries at least a copy lacks that is put back.
const lost = 2

// rewind puts copies of machines' disks back until the faults end, one at a time. Each
// copy lacks entries that were committed when the machine had them, so its node must
// notice, and end; it is then removed, and joins without its data.
func (c *churn) rewind() {
	defer c.client.close()
	for c.pause(); !c.world.healing.Load(); c.pause() {
		s := pick(c.random, c.world.machines()...)
		if c.random.IntN(3) == 0 && !c.world.plan.live {
			s.current().stop()
			<-s.current().gone
		}
		p, copied := s.current(), s.disk.copy()
		sleep(c.world.ctx, 500*time.Millisecond) // What it has beyond what is applied is decided.
		at := c.applied(s)
		c.pause()
		if at == 0 || c.applied(s) < at+lost {
			continue
		}
		sleep(c.world.ctx, 500*time.Millisecond) // The others see what it has.
		if c.allUp() {
			if c.world.plan.live {
				s.resume(p, copied)
			}
			c.putBack(s, copied)
		}
	}
}

// allUp says whether all machines' nodes vote.
func (c *churn) allUp() bool {
	for _, s := range c.world.machines() {
		if !c.settled(s) {
			return false
		}
	}
	return true
}

// resume has the machine's next process be one that was there before, as if the machine was set
// back with the memory that it had when that one started: it counts no other start, and has no
// other number. What that one remembered of the time until the copy was made is lost.
func (s *server) resume(p *process, copied *image) {
	starts, counted := copied.stable[keyStarts]
	if !counted {
		return // The process had hardly begun.
	}
	copied.stable[keyStarts] = binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(starts)-1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = p.number
}

// putBack has a machine find an older copy of its disk, and waits until its node has
// noticed.
func (c *churn) putBack(s *server, copied *image) {
	c.world.log.Info("fault", "kind", "rewind", "node", s.host, "live", c.world.plan.live)
	s.rewound.Store(true)
	s.disk.putBack(copied)
	s.current().kill(c.random.IntN(2) == 0)
	c.until("noticing that the disk of "+s.host+" is an older copy", func(context.Context) bool {
		p := s.current()
		select {
		case <-p.gone:
			return errors.Is(p.failure(), member.ErrSetBack)
		default:
			return false
		}
	})
	c.replace(s)
	s.rewound.Store(false)
}

// copy returns what the disk has durably.
func (d *disk) copy() *image {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.durable.clone()
}

// putBack has the next process find a copy.
func (d *disk) putBack(copied *image) {
	d.mu.Lock()
	defer d.mu.Unlock()
	copied.older = true
	d.older = copied
}
