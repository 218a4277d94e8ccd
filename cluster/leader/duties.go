package leader

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
)

// transferBackoff is the time after a failed transfer of leadership in which no other starts:
// the next answers to pings may show a better target.
const transferBackoff = peers.PingEvery

// task is what a check found to do. It may take long.
type task func(ctx context.Context) error

// duty is a periodic check of a leader, and the task that the check starts.
type duty struct {
	name string
	// every is the pause from a check, or from the end of its task, to the next check.
	every time.Duration
	// check returns what is to be done; nil means nothing. It waits for neither disk nor
	// network, so that it holds up no other duty.
	check func(now time.Time) task
	// wake, if set, has the check made at once. Only one duty may have it.
	wake <-chan struct{}
	// early duties begin with the leadership, the others once it is established.
	early bool
	// transfers means that the task transfers leadership. One such task runs at a time, and
	// none within transferBackoff after a failed transfer.
	transfers bool
	// failed is what the log says of a task that failed, at this level.
	failed string
	level  slog.Level
}

// duties is the one loop of a leader's duties, for one leadership. While the task of a duty
// runs, the other duties are still checked.
type duties struct {
	all []*dutyState
	// leads reports whether this node still leads.
	leads func() bool
	// established means that the duties that are not early have begun.
	established bool
	// ended gets each task that has ended.
	ended chan endedTask
	// transferring means that a task that transfers leadership runs; transferAfter is when the
	// next such task may start.
	transferring  bool
	transferAfter time.Time
}

// dutyState is a duty and when it is checked next.
type dutyState struct {
	duty
	next       time.Time
	running    bool
	complaints member.Complaints
}

type endedTask struct {
	of  *dutyState
	err error
}

func newDuties(leads func() bool, log *slog.Logger, all ...duty) *duties {
	d := &duties{leads: leads, ended: make(chan endedTask, len(all))}
	for _, one := range all {
		d.all = append(d.all, &dutyState{duty: one, complaints: member.Complaints{Logger: log.With("duty", one.name), Level: one.level}})
	}
	return d
}

// run does the duties until ctx or the leadership ends, and waits for the tasks. established
// is closed when the leadership is established.
func (d *duties) run(ctx context.Context, established <-chan struct{}) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for ctx.Err() == nil && d.leads() {
		now := time.Now()
		for _, s := range d.all {
			if t := d.due(s, now); t != nil {
				tasks.Go(func() { d.ended <- endedTask{s, t(ctx)} })
			}
		}
		next, wake := d.next(now)
		timer := time.NewTimer(time.Until(next.next))
		select {
		case <-timer.C:
		case e := <-d.ended:
			d.end(ctx, e)
		case <-wake.wake:
			wake.next = now
		case <-established:
			d.established, established = true, nil
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// next returns the duty whose check is due next, and the duty that can be woken now, or an
// empty one.
func (d *duties) next(now time.Time) (next, wake *dutyState) {
	next, wake = &dutyState{next: now.Add(time.Hour)}, &dutyState{}
	for _, s := range d.all {
		if !d.waits(s) {
			continue
		}
		if s.next.Before(next.next) {
			next = s
		}
		if s.wake != nil {
			wake = s
		}
	}
	return next, wake
}

// waits reports whether a duty waits for its next check.
func (d *duties) waits(s *dutyState) bool { return !s.running && (s.early || d.established) }

// due makes a check that is due, and returns the task that begins with it; nil if none does.
func (d *duties) due(s *dutyState, now time.Time) task {
	if !d.waits(s) || now.Before(s.next) {
		return nil
	}
	s.next = now.Add(s.every)
	if s.transfers && (d.transferring || now.Before(d.transferAfter)) {
		return nil
	}
	t := s.check(now)
	s.running = t != nil
	d.transferring = d.transferring || s.transfers && s.running
	return t
}

// end takes the end of a task, and logs its error.
func (d *duties) end(ctx context.Context, e endedTask) {
	now := time.Now()
	e.of.running, e.of.next = false, now.Add(e.of.every)
	if e.of.transfers {
		d.transferring = false
	}
	if e.err == nil || ctx.Err() != nil {
		return
	}
	if e.of.transfers {
		d.transferAfter = now.Add(transferBackoff)
	}
	e.of.complaints.Log(e.of.failed, e.err)
}
