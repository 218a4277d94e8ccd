package reserve

import (
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestAGrantOfADeletedDatabaseIsNotGiven: it was applied before the database ended, and answered afterwards. The
// counter begins anew, so another caller may have the same numbers.
func TestAGrantOfADeletedDatabaseIsNotGiven(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		deleted := false
		n.meanwhile = func() {
			if w.max("users") < 500 {
				return // A caller's range, not yet the grant.
			}
			n.meanwhile = nil
			w.must(&raftlogv1.DatabaseDelete{}, "db")
			deleted = true
		}
		n.use("users", 3, time.Minute)
		if !deleted {
			t.Fatal("nothing was granted")
		}
		other := w.next("users", 5000, 0)
		for _, r := range n.drain("users", 3) {
			if r.Low <= other.High && other.Low <= r.High {
				t.Fatalf("%v is given here, and %v to another caller", r, other)
			}
		}
	})
}
