package leader

import (
	"context"
	"log/slog"
	"time"

	"github.com/idnode/idnode/cluster/duty"
)

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
			return t.run(ctx, to)
		}
	}
	return transferDuty("full disk", fullDiskTick, check)
}

// transferDuty returns a duty whose task transfers leadership.
func transferDuty(name string, every time.Duration, check func(time.Time) duty.Task) duty.Duty {
	return duty.Duty{
		Name: name, Every: every, Check: check, Late: true, Transfers: true,
		Failed: "leadership was not transferred", Level: slog.LevelWarn,
	}
}
