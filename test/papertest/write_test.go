package papertest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// TestHeartbeatsAreAnsweredDuringAWrite: figure 2, leaders: heartbeats "prevent election
// timeouts". They count for the leader's lease too, for as long as A's disk takes; but not
// once there may be another leader.
func TestHeartbeatsAreAnsweredDuringAWrite(t *testing.T) {
	const latency = 800 * time.Millisecond
	for _, c := range []struct {
		name string
		// after is when in the write the heartbeat comes.
		after     time.Duration
		candidate bool
		// waits is for how long it waits for its answer.
		waits time.Duration
	}{
		{"it begins", 0, false, 0},
		{"it takes long", 750 * time.Millisecond, false, 0},
		{"another node campaigns", 300 * time.Millisecond, true, 500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
				p.Disk.Slow(latency)
				written := make(chan raft.AppendEntriesResponse, 1)
				go func() { written <- p.Append("B", 1, 2, 1, 2, Entry(3, 1)) }()
				synctest.Wait()
				voted := make(chan raft.RequestVoteResponse, 1)
				if c.candidate {
					go func() { voted <- p.Vote("C", 2, 9, 1) }()
					synctest.Wait()
				}
				time.Sleep(c.after)
				begin := time.Now()
				resp := p.Append("B", 1, 0, 0, 0)
				if waited := time.Since(begin); !resp.Success || resp.Term != 1 || waited != c.waits {
					t.Errorf("answered with %+v after %s, want success after %s", resp, waited, c.waits)
				}
				if resp := <-written; !resp.Success {
					t.Errorf("the entry: %+v", resp)
				}
				if c.candidate {
					<-voted
				}
				p.wantLog(1, 1, 1)
			})
		})
	}
}
