package leader

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/internal/pause"
)

// slowTick is how often a leader whose disk is slow looks for a voter to elect, and quickTick how often
// one looks that is told when its disk becomes slow.
const slowTick, quickTick = 50 * time.Millisecond, time.Second

// leaveSlowDisk has another voter elected while a write of this leader hangs. If that cannot
// help, or did not in an earlier leadership on this slow disk, this node continues to lead: an
// election without a winner costs more than slow writes.
//
// Raft's main goroutine waits for the write, so it cannot transfer leadership; and it would
// continue to lead, because other goroutines send its heartbeats. So the voter gets only the
// last step of a transfer, the TimeoutNow request.
func (t *Transfer) leaveSlowDisk() duty.Duty {
	term := t.cfg.Raft.CurrentTerm()
	var hung time.Time
	check := func(now time.Time) duty.Task {
		if !t.cfg.Disk.Hang() {
			hung = time.Time{}
		} else if hung.IsZero() {
			hung = now
		}
		switch inVain := t.toldIn != 0 && t.toldIn != term && !t.replaced(t.toldIn); {
		case t.replaced(term):
		case !t.cfg.Disk.Slow(now):
			t.toldIn = 0
		case t.cfg.Disk.Hang() && now.Sub(hung) >= slowTick && !inVain && t.majorityWithoutSelf():
			return t.tellToCampaign(term)
		}
		return nil
	}
	pause := func() time.Duration {
		if t.cfg.Disk.Slow(time.Now()) {
			return slowTick
		}
		return quickTick
	}
	return duty.Duty{
		Name: "slow disk", Pause: pause, Check: check, Wake: t.cfg.Disk.BecameSlow(),
		Failed: "the voter did not campaign", Level: slog.LevelWarn,
	}
}

func (t *Transfer) replaced(term uint64) bool {
	return t.cfg.Transport.Contact().Term > term
}

// majorityWithoutSelf reports whether the other voters whose disks are not slow are a
// majority. No fewer can elect a leader: they lack the entry that this node writes, so that
// it refuses them its vote (§5.4.1).
func (t *Transfer) majorityWithoutSelf() bool {
	quick := 0
	for _, target := range t.targets() {
		if !target.slow {
			quick++
		}
	}
	return quick > len(t.cfg.Configuration.Voters())/2
}

func (t *Transfer) tellToCampaign(term uint64) duty.Task {
	to, found := t.nextTarget()
	m, known := t.cfg.Table.ByServerID(string(to.ID))
	if !found || !known {
		return nil
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*t.cfg.Heartbeat)
		defer cancel()
		// What is known of its disk may be a second old, and one disk may serve all voters.
		reply, err := t.cfg.Pinger.Ask(ctx, m)
		if err != nil || reply.GetStorageSlow() {
			return cmp.Or(err, errTargetSlow)
		}
		t.cfg.Log.Warn("a write to this leader's disk hangs: telling another voter to campaign", "to", to.ID)
		if err := t.cfg.Transport.SendTimeoutNow(ctx, to.ID); err != nil {
			return err
		}
		t.toldIn = term
		for ctx.Err() == nil && !t.replaced(term) {
			pause.For(ctx, slowTick/10)
		}
		return nil
	}
}

// fullDiskTick is how often a leader compares its disk with those of the others. It
// costs no message: the pinger has the answers.
const fullDiskTick = 100 * time.Millisecond

// leaveFullDisk transfers leadership while this node's disk is nearly full and another
// voter's is not: a leader without space refuses all calls.
func (t *Transfer) leaveFullDisk() duty.Duty {
	check := func(time.Time) duty.Task {
		if !t.cfg.Space.Below() {
			return nil
		}
		to, found := t.nextTarget()
		if !found {
			return nil
		}
		return func(ctx context.Context) error {
			t.cfg.Log.Warn("this leader's disk is nearly full: transferring leadership to a voter with space", "to", to.ID)
			return t.to(ctx, to)
		}
	}
	return transferDuty("full disk", fullDiskTick, check)
}
