package leader

import (
	"context"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/internal/pause"
)

// AtStop transfers leadership to the default target, as run does, after a transfer that is in
// progress. It ends early once too few voters answer for any to be elected: they may be stopped at
// the same moment.
func (t *Transfer) AtStop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	go func() {
		for ctx.Err() == nil && t.mayElect() {
			pause.For(ctx, adminPause)
		}
		cancel()
	}()
	for !t.running.TryLock() {
		if pause.For(ctx, adminPause); ctx.Err() != nil {
			return t.leadsOn(errTransfers)
		}
	}
	defer t.running.Unlock()
	if t.cfg.Raft.State() != raft.Leader {
		return nil
	}
	_, err := t.alone(ctx, t.defaultTarget())
	return err
}

// mayElect reports whether a majority of the voters may be there, with this one: of the others those that
// can be dialled and have answered pings of late. One late answer shows nothing.
func (t *Transfer) mayElect() bool {
	voters, there := t.cfg.Configuration.VotingMembers(), 0
	for _, m := range voters {
		_, gone := t.cfg.Transport.Unreachable(member.ServerID(m.GetId()))
		if t.cfg.Record.IsSelf(m) || gone == nil && t.cfg.Pinger.Silence(m.GetId()) < peers.SilentAfter {
			there++
		}
	}
	return there > len(voters)/2
}
