package simulation

import (
	"errors"
	"time"

	"github.com/idnode/idnode/cluster/member"
)

// divergeLimit is the time in which a node must notice that its state differs.
const divergeLimit = 10 * time.Second

// diverge changes the state of one node beside the log, when nothing else is wrong.
// That node must end, whether it leads or not, and not start again; no other may.
func (w *world) diverge(c *client) {
	r := w.plan.stream(50)
	machines := w.machines()
	if len(w.failures()) > 0 || len(machines) < 3 || r.IntN(4) > 0 {
		return
	}
	s := pick(r, machines...)
	w.log.Info("fault", "kind", "a changed state", "node", s.host)
	s.changed.Store(true)
	first := s.current()
	deadline := time.Now().Add(divergeLimit)
	for time.Now().Before(deadline) {
		switch p := s.current(); {
		case p == first:
		case !errors.Is(first.failure(), member.ErrDiverged):
			first = p // It ended for a fault from before, such as a disk that hung (seed 2947).
		case errors.Is(p.failure(), member.ErrDiverged):
			return
		}
		c.take(w.ctx, pick(r, machines...)) // States are compared after the next entry.
		sleep(w.ctx, 100*time.Millisecond)
	}
	w.found("node %s, whose state was changed, ended with %v, and then %v, within %v", s.host, first.failure(),
		s.current().failure(), divergeLimit)
}
