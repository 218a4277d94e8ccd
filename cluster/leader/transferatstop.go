package leader

import (
	"context"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/pause"
)

// AtStop transfers leadership to the default target, as run does, after a transfer that is in
// progress. It ends early once too few voters answer for any to be elected: they may be stopped at
// the same moment.
func (t *Transfer) AtStop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	go func() {
		for ctx.Err() == nil && len(t.targets())+1 > len(t.cfg.Configuration.Voters())/2 {
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
