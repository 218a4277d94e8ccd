package leader

import (
	"context"
	"time"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/peers"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
)

const (
	// linksTick is how often a leader looks who is in touch with whom. It costs no message.
	linksTick = 200 * time.Millisecond
	// minLonely is how long a leader must have been in touch with too few before it transfers
	// leadership. Each attempt in one leadership doubles that, up to maxLonely.
	minLonely, maxLonely = 2 * time.Second, time.Minute
)

// links is which voters are in touch with which, by their answers to this leader's pings. Two are in
// touch if each answers the other: callers' operations go the one way, log entries the other.
type links struct {
	voters []string
	// replies are by raw Raft id. A voter that does not answer has none.
	replies map[string]*peerv1.PingResponse
}

// lonely reports whether a voter and those that it is in touch with are no majority.
func (l links) lonely(id string) bool {
	together := 0
	for _, other := range l.voters {
		if other == id || l.answers(id, other) && l.answers(other, id) {
			together++
		}
	}
	return together <= len(l.voters)/2
}

// answers reports whether a voter answers another that asks, which is the case as long as
// neither says otherwise.
func (l links) answers(id, asks string) bool {
	return l.replies[id] != nil && l.replies[asks] != nil && !peers.Misses(l.replies[asks], []byte(id))
}

func (t *Transfer) links() links {
	l := links{t.cfg.Configuration.Voters(), map[string]*peerv1.PingResponse{}}
	for _, id := range l.voters {
		l.replies[id] = t.cfg.Pinger.Contact([]byte(id)).Reply
	}
	l.replies[string(t.cfg.Record.ID())] = &peerv1.PingResponse{} // It has the answer of each that it reaches.
	return l
}

// leaveUnreached transfers leadership while most voters say that this leader does not answer them, to
// one that does: Raft's own messages, which the leader sends, get to them nevertheless.
func (t *Transfer) leaveUnreached() duty.Duty {
	var since time.Time
	wait := minLonely
	check := func(now time.Time) duty.Task {
		if !t.links().lonely(string(t.cfg.Record.ID())) {
			since = time.Time{}
			return nil
		}
		if since.IsZero() {
			since = now
		}
		if now.Sub(since) < wait {
			return nil
		}
		to, found := t.nextTarget()
		if !found {
			return nil
		}
		since, wait = now, min(2*wait, maxLonely)
		return func(ctx context.Context) error {
			t.cfg.Log.Warn("most voters get no answer from this leader: transferring leadership to a voter that they reach", "to", to.ID)
			return t.to(ctx, to)
		}
	}
	return transferDuty("links", linksTick, check)
}
