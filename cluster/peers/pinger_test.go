package peers

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/nodeid"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// newQuietPinger returns a Pinger that pings nobody, of a node at a:1 with the member B.
func newQuietPinger() *Pinger {
	own := member.NewNodeRecord(&member.Record{ID: nodeid.ID{1}}, member.NodeRecordConfig{Advertise: member.Addresses{Raft: "a:1"}})
	members := []*raftlogv1.Member{{Id: []byte("B"), Tag: "B"}}
	table := NewTable(func() []*raftlogv1.Member { return members }, own)
	return NewPinger(Config{Record: own, Raft: new(raft.Raft), States: &apply.States{}, Table: table})
}

// TestALateAnswerMakesNoWayLonger: the distance of a member is the time of its answers, but a late
// answer counts for at most a quarter more than the answer before.
func TestALateAnswerMakesNoWayLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pinger := newQuietPinger()
		b := &raftlogv1.Member{Id: []byte("B"), Tag: "B"}
		if got := pinger.Contact(b.GetId()).RoundTrip; got != 0 {
			t.Errorf("%v before the first answer", got)
		}
		for i, step := range []struct{ took, want time.Duration }{
			{80, 80}, {12, 12}, {900, 15}, {900, 18}, {12, 12}, {14, 14}, {18, 17}, {18, 18},
		} {
			pinger.keep(b, time.Now().Add(-step.took), &peerv1.PingResponse{}, nil)
			if got := pinger.Contact(b.GetId()).RoundTrip; got != step.want {
				t.Errorf("answer %d took %d: %d away, want %d", i, step.took, got, step.want)
			}
		}
	})
}

// TestANodeThatDoesNotAnswerOthersSaysSo: its own pings are answered, so it learns from the answers. One
// that has just started has not been pinged yet.
func TestANodeThatDoesNotAnswerOthersSaysSo(t *testing.T) {
	pinger, b := newQuietPinger(), &raftlogv1.Member{Id: []byte("B"), Tag: "B"}
	missesUs, missesC := [][]byte{[]byte("C"), pinger.cfg.Record.ID()}, [][]byte{[]byte("C")}
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			outOfReach [][]byte
			after      time.Duration
			warned     bool
		}{
			{nil, 0, false},
			{missesC, SilentAfter, false},
			{missesUs, 0, false},
			{missesUs, SilentAfter - 1, false},
			{missesUs, 1, true},
			{missesC, 0, false},
			{missesUs, 0, false},
		} {
			time.Sleep(tt.after)
			pinger.keep(b, time.Now(), &peerv1.PingResponse{OutOfReach: tt.outOfReach}, nil)
			if got := strings.Join(pinger.Unreached(), ""); strings.Contains(got, " B at a:1") != tt.warned || tt.warned != (got != "") {
				t.Errorf("B says that %q do not answer: %q", tt.outOfReach, got)
			}
		}
	})
}

// TestPingsComeSoonAfterAStart: while a member is silent, and not for longer than a start
// takes.
func TestPingsComeSoonAfterAStart(t *testing.T) {
	silent := map[string]Contact{"B": {SilentSince: time.Now()}}
	tests := []struct {
		name   string
		silent map[string]Contact
		age    time.Duration
		want   time.Duration
	}{
		{"all answer", nil, 0, PingEvery},
		{"one is silent", silent, startPings / 2, startPingEvery},
		{"one is silent for long", silent, startPings, PingEvery},
	}
	for _, tt := range tests {
		p := &Pinger{contacts: tt.silent, began: time.Now().Add(-tt.age)}
		if got := p.pause(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
