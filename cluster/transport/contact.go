package transport

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// Contact is this process's last contact with the newest leader other than itself.
type Contact struct {
	// Term is the newest term in which a leader's request has arrived; 0 if none has.
	Term uint64
	// Leader is the leader of Term.
	Leader raft.ServerID
	// Heard is when the leader's last request arrived.
	Heard time.Time
	// Connected means that the leader has a connection to this node. A leader always has a
	// connection, since heartbeats use it.
	Connected bool
}

// Contact returns this process's contact with the newest leader; its Term is 0 if there was
// none. Raft on this node may not have read the leader's request yet.
func (t *Transport) Contact() Contact {
	c := t.inbound.contact()
	c.Connected = c.Term > 0 && t.stream.conns.connected(string(c.Leader))
	return c
}

// Lost returns a channel that gets a value after the last connection from a member was
// closed by that member. The channel holds one value.
func (t *Transport) Lost() <-chan struct{} { return t.stream.conns.lost }

// Answers reports whether a member's process answers the greeting of a new connection, even
// by a refusal. Otherwise it returns false and the cause: a failed dial or TLS handshake, a
// closed connection, another node's answer, a member unknown to the Directory, or the end
// of ctx.
func (t *Transport) Answers(ctx context.Context, id raft.ServerID) (bool, error) {
	peer, err := t.stream.lookup(string(id))
	if err != nil {
		return false, err
	}
	open, err := t.stream.greet(ctx, peer, forProbe)
	if err != nil {
		return processAnswers(err), err
	}
	return true, open.raw.Close()
}

// Installing reports whether Raft is reading a snapshot, or a snapshot is waiting.
func (t *Transport) Installing() bool { return t.inbound.installing.Load() }

// CanCampaign reports whether this node may campaign at once: enough voters have accepted
// its process, it has not stepped down, and it is not installing a snapshot.
func (t *Transport) CanCampaign() bool {
	led := t.inbound.contact()
	return t.inbound.gate.mayCampaign() == nil && t.steppedDown.canCampaign(time.Now(), led.Term, led.Heard) && !t.inbound.installing.Load()
}

// Campaign makes this node's Raft campaign at once, as after a TimeoutNow request (raft
// thesis 3.10): without a pre-vote, and voters grant the vote even if they know a leader.
// The caller must be sure that the leader of term is gone. The campaign is dropped if Raft
// has got, or gets next, a request of a newer term, or a snapshot, or if CanCampaign is
// false, or if the leader is heard again before Raft reads the request.
func (t *Transport) Campaign(ctx context.Context, term uint64) {
	if !t.CanCampaign() {
		return
	}
	select {
	case t.inbound.campaigns <- term:
	case <-ctx.Done():
	case <-t.stream.ctx.Done():
	}
}

type campaign struct {
	raft.TimeoutNowRequest
	term uint64
}

// queueCampaign queues a campaign after a term, unless a newer request was seen.
func (i *inbound) queueCampaign(term uint64) {
	if i.newest != term || i.campaign != nil || i.install != nil || len(i.waiting) > 0 {
		return
	}
	i.campaign = &campaign{raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}, term}
	i.queue = append(i.queue, raft.RPC{Command: &i.campaign.TimeoutNowRequest, RespChan: make(chan raft.RPCResponse, 1)})
}

// withdrawCampaign removes a queued campaign that Raft has not taken, after a request of a
// newer term.
func (i *inbound) withdrawCampaign() {
	if i.campaign != nil && i.newest > i.campaign.term {
		i.dropCampaign()
	}
}

func (i *inbound) dropCampaign() {
	i.queue = slices.DeleteFunc(i.queue, i.isCampaign)
	i.campaign = nil
}

func (i *inbound) isCampaign(rpc raft.RPC) bool {
	r, ok := rpc.Command.(*raft.TimeoutNowRequest)
	return ok && i.campaign != nil && r == &i.campaign.TimeoutNowRequest
}
