package transport

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// errSteppedDown is the library's error for a message that is not sent because of StepDown.
var errSteppedDown = errors.New("this node has stepped down")

// stepDown is a term that this node no longer leads, and how long it does not campaign:
// until end, or until first if no node has led a newer term for the time quiet by then.
type stepDown struct {
	mu         sync.Mutex
	term       uint64
	quiet      time.Duration
	first, end time.Time
}

// StepDown ends this node's leadership of term: it sends no more messages as its leader, the
// lease ends, and the others elect another leader. This node does not campaign for backoff,
// so that another node is elected, or only for first if no other leader is heard in that
// time. It votes, and it campaigns if a leader transfers leadership to it.
func (t *Transport) StepDown(term uint64, first, backoff time.Duration) {
	t.steppedDown.begin(time.Now(), term, first, backoff)
}

func (r *stepDown) begin(now time.Time, term uint64, first, backoff time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term, r.quiet, r.first, r.end = term, first, now.Add(first), now.Add(backoff)
}

func (r *stepDown) leads(term uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return term > r.term
}

// canCampaign reports whether this node may campaign. led is the newest term of another
// leader, and heard when that leader was last heard.
func (r *stepDown) canCampaign(now time.Time, led uint64, heard time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if led > r.term && now.Sub(heard) < r.quiet {
		return !now.Before(r.end)
	}
	return !now.Before(r.first)
}

// RequestPreVote implements raft.WithPreVote. A node whose pre-vote fails does not request
// votes.
func (t *Transport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest,
	resp *raft.RequestPreVoteResponse,
) error {
	led := t.inbound.contact()
	if !t.steppedDown.canCampaign(time.Now(), led.Term, led.Heard) {
		return errSteppedDown
	}
	if err := t.inbound.gate.mayCampaign(); err != nil {
		return err
	}
	return t.retryOnClosedConn(func() error { return t.NetworkTransport.RequestPreVote(id, target, args, resp) })
}
