// Package duty runs periodic checks, each with the work that it finds, in one loop: the duties
// of a node, and those of one leadership.
package duty

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/idnode/idnode/cluster/member"
)

// transferBackoff is the time after a failed transfer of leadership in which no other starts:
// the next answers to pings may show a better target.
const transferBackoff = time.Second

// beat is the distance of the moments at which checks are made.
const beat = 50 * time.Millisecond

// Beats are the moments at which a node makes checks, the same for all its loops: so its process wakes
// once for all that is due.
type Beats struct{ began time.Time }

// NewBeats returns the beats that begin now.
func NewBeats() Beats { return Beats{time.Now()} }

// Next returns the moment next to the end of a pause. That of a pause shorter than a beat is a multiple
// of the pause.
func (b Beats) Next(now time.Time, pause time.Duration) time.Time {
	return b.began.Add((now.Sub(b.began) + pause).Round(min(pause, beat)))
}

// Task is what a check found to do. It may take long.
type Task func(ctx context.Context) error

// Duty is a periodic check, and the task that the check starts.
type Duty struct {
	Name string
	// Every is the pause from a check, or from the end of its task, to the next check. Pause, if
	// set, returns it instead.
	Every time.Duration
	Pause func() time.Duration
	// Check returns what is to be done; nil means nothing. It waits for neither disk nor
	// network, so that it holds up no other duty.
	Check func(now time.Time) Task
	// Wake, if set, has the check made at once. Only one duty of a loop may have it.
	Wake <-chan struct{}
	// Late duties begin once the leadership is established.
	Late bool
	// Transfers means that the task transfers leadership. One such task runs at a time, and
	// none within transferBackoff after a failed transfer.
	Transfers bool
	// Failed is what the log says of a task that failed, at this level.
	Failed string
	Level  slog.Level
}

// Always returns a check that starts the task each time.
func Always(task Task) func(time.Time) Task { return func(time.Time) Task { return task } }

// Loop is the one loop of its duties. While the task of a duty runs, the other duties are still
// checked.
type Loop struct {
	all []*state
	// established means that the late duties have begun.
	established bool
	ended       chan endedTask
	beats       Beats
	// transferring means that a task that transfers leadership runs; transferAfter is when the
	// next such task may start.
	transferring  bool
	transferAfter time.Time
}

type state struct {
	Duty
	next       time.Time
	running    bool
	complaints member.Complaints
}

type endedTask struct {
	of  *state
	err error
}

// New returns a Loop that has checked nothing.
func New(log *slog.Logger, beats Beats, all ...Duty) *Loop {
	l := &Loop{ended: make(chan endedTask, len(all)), beats: beats}
	for _, d := range all {
		l.all = append(l.all, &state{Duty: d, complaints: member.Complaints{Logger: log.With("duty", d.Name), Level: d.Level}})
	}
	return l
}

// Run does the duties as long as lasts returns true and until ctx ends, and waits for the tasks.
// established is closed when the late duties begin.
func (l *Loop) Run(ctx context.Context, lasts func() bool, established <-chan struct{}) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for ctx.Err() == nil && lasts() {
		now := time.Now()
		for _, s := range l.all {
			if t := l.due(s, now); t != nil {
				tasks.Go(func() { l.ended <- endedTask{s, t(ctx)} })
			}
		}
		next, wake := l.next(now)
		timer := time.NewTimer(time.Until(next.next))
		select {
		case <-timer.C:
		case e := <-l.ended:
			l.end(ctx, e)
		case <-wake.Wake:
			wake.next = now
		case <-established:
			l.established, established = true, nil
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// next returns the duty whose check is due next, and the duty that can be woken now, or an
// empty one.
func (l *Loop) next(now time.Time) (next, wake *state) {
	next, wake = &state{next: now.Add(time.Hour)}, &state{}
	for _, s := range l.all {
		if !l.waits(s) {
			continue
		}
		if s.next.Before(next.next) {
			next = s
		}
		if s.Wake != nil {
			wake = s
		}
	}
	return next, wake
}

func (l *Loop) waits(s *state) bool { return !s.running && (!s.Late || l.established) }

// due makes a check that is due, and returns the task that begins with it; nil if none does.
func (l *Loop) due(s *state, now time.Time) Task {
	if !l.waits(s) || now.Before(s.next) {
		return nil
	}
	s.rest(l.beats, now)
	if s.Transfers && (l.transferring || now.Before(l.transferAfter)) {
		return nil
	}
	t := s.Check(now)
	s.running = t != nil
	l.transferring = l.transferring || s.Transfers && s.running
	return t
}

func (s *state) rest(beats Beats, now time.Time) {
	pause := s.Every
	if s.Pause != nil {
		pause = s.Pause()
	}
	s.next = beats.Next(now, pause)
}

func (l *Loop) end(ctx context.Context, e endedTask) {
	now := time.Now()
	e.of.running = false
	e.of.rest(l.beats, now)
	if e.of.Transfers {
		l.transferring = false
	}
	if e.err == nil || ctx.Err() != nil {
		return
	}
	if e.of.Transfers {
		l.transferAfter = now.Add(transferBackoff)
	}
	e.of.complaints.Log(e.of.Failed, e.err)
}
