package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/member"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestALateAnswerMakesNoWayLonger: a member is as far away as its answers take, but one
// that is late counts for twice the one before.
func TestALateAnswerMakesNoWayLonger(t *testing.T) {
	paperTest(t, paperOptions{terms: []uint64{1, 1}, term: 1}, func(p *paper) {
		pinger := newMemberPinger(&memberPinger{raft: p.raft, pings: &pings{states: &apply.States{}}})
		b := &raftlogv1.Member{Id: []byte("B")}
		if got := pinger.roundTrip(b.GetId()); got != 0 {
			t.Errorf("%v before the first answer", got)
		}
		for i, step := range []struct{ took, want time.Duration }{{80, 80}, {10, 10}, {900, 20}, {10, 10}, {15, 15}, {40, 30}, {40, 40}} {
			pinger.keep(b, time.Now().Add(-step.took), &peerv1.PingResponse{}, nil)
			if got := pinger.roundTrip(b.GetId()); got != step.want {
				t.Errorf("answer %d took %d: %d away, want %d", i, step.took, got, step.want)
			}
		}
	})
}

// TestANodeThatNoMemberReachesSaysSo: its own pings are answered, so nothing else is wrong.
func TestANodeThatNoMemberReachesSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := newNodeRecord(Config{Advertise: Addresses{GRPC: "a:1"}}, &member.Record{}, nil)
		pinger := newMemberPinger(&memberPinger{pings: &pings{record: own}})
		want := func(warned bool, when string) {
			t.Helper()
			if got := pinger.unreached(); (len(got) > 0) != warned {
				t.Errorf("%s: %q", when, got)
			}
		}
		time.Sleep(unreachedAfter)
		want(false, "nobody answers")
		pinger.replies["B"] = &peerv1.PingResponse{}
		want(false, "one answers that does not run Raft, and pings nobody")
		pinger.replies["B"].Process = 1
		want(true, "one answers that pings all")
		pinger.wasPinged()
		time.Sleep(unreachedAfter - 1)
		want(false, "it has been reached")
		time.Sleep(time.Nanosecond)
		want(true, "and no more")
	})
}
