package leader

import (
	"context"
	"log/slog"
	"time"
)

// fullDiskTick is how often a leader compares its disk with those of the others. It
// costs no message: the pinger has the answers.
const fullDiskTick = 100 * time.Millisecond

// leaveFullDisk transfers leadership while this node's disk is nearly full and another
// voter's is not: a leader without space refuses all calls.
func (t *Transfer) leaveFullDisk() duty {
	check := func(time.Time) task {
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
	return duty{name: "full disk", every: fullDiskTick, check: check, transfers: true, failed: notTransferred, level: slog.LevelWarn}
}

// notTransferred is what the log says of a transfer that failed.
const notTransferred = "leadership was not transferred"
