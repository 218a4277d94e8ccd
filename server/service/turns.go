package service

import (
	"context"
	"slices"
	"sync"
)

// turns bounds the calls that work for long: mostTurns on the node, and one for each caller. The
// others wait. Callers take turns, so a caller that asks very often waits only for itself
// (round-robin, which is fair queueing for calls of equal cost).
type turns struct {
	mu    sync.Mutex
	going int
	// lines are the callers with calls that run or wait. queue has the callers of which a call
	// waits and none runs, in the order of their turns.
	lines map[string]*line
	queue []*line
}

type line struct {
	caller string
	going  bool
	// waiting has what is closed when it is the turn of each.
	waiting []chan struct{}
}

// mostTurns leaves half of a small machine's processors to other calls, because those that
// take long rest half of the time.
const mostTurns = 4

// wait returns when it is a call's turn, with what ends it; or the error of ctx.
func (t *turns) wait(ctx context.Context, caller string) (end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err // Not by chance, where it is its turn at once.
	}
	l, mine := t.join(caller)
	select {
	case <-mine:
		return func() { t.end(l) }, nil
	case <-ctx.Done():
		t.giveUp(l, mine)
		return nil, ctx.Err()
	}
}

func (t *turns) join(caller string) (*line, chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[caller]
	if l == nil {
		l = &line{caller: caller}
		if t.lines == nil {
			t.lines = map[string]*line{}
		}
		t.lines[caller] = l
	}
	if !l.going && len(l.waiting) == 0 {
		t.queue = append(t.queue, l)
	}
	mine := make(chan struct{})
	l.waiting = append(l.waiting, mine)
	t.next()
	return l, mine
}

// next lets calls go on as far as there is room. t.mu is held.
func (t *turns) next() {
	for t.going < mostTurns && len(t.queue) > 0 {
		l := t.queue[0]
		t.queue = t.queue[1:]
		close(l.waiting[0])
		l.waiting, l.going = l.waiting[1:], true
		t.going++
	}
}

func (t *turns) end(l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.going--
	l.going = false
	if len(l.waiting) > 0 {
		t.queue = append(t.queue, l)
	} else {
		delete(t.lines, l.caller)
	}
	t.next()
}

// giveUp removes a waiting call, or ends one whose turn has just come.
func (t *turns) giveUp(l *line, mine chan struct{}) {
	t.mu.Lock()
	at := slices.Index(l.waiting, mine)
	if at < 0 {
		t.mu.Unlock()
		t.end(l)
		return
	}
	defer t.mu.Unlock()
	l.waiting = slices.Delete(l.waiting, at, at+1)
	if len(l.waiting) == 0 && !l.going {
		t.queue = slices.DeleteFunc(t.queue, func(other *line) bool { return other == l })
		delete(t.lines, l.caller)
	}
}
