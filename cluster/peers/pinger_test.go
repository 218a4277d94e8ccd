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

// TestALateAnswerMakesNoWayLonger: a member is as far away as its answers take, but one
// that is late counts for twice the one before.
func TestALateAnswerMakesNoWayLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pinger := NewPinger(Config{Raft: new(raft.Raft), States: &apply.States{}})
		b := &raftlogv1.Member{Id: []byte("B")}
		if got := pinger.Contact(b.GetId()).RoundTrip; got != 0 {
			t.Errorf("%v before the first answer", got)
		}
		for i, step := range []struct{ took, want time.Duration }{{80, 80}, {10, 10}, {900, 20}, {10, 10}, {15, 15}, {40, 30}, {40, 40}} {
			pinger.keep(b, time.Now().Add(-step.took), &peerv1.PingResponse{}, nil)
			if got := pinger.Contact(b.GetId()).RoundTrip; got != step.want {
				t.Errorf("answer %d took %d: %d away, want %d", i, step.took, got, step.want)
			}
		}
	})
}

// TestANodeThatDoesNotAnswerOthersSaysSo: its own pings are answered, so it learns from the answers.
func TestANodeThatDoesNotAnswerOthersSaysSo(t *testing.T) {
	own := member.NewNodeRecord(&member.Record{ID: nodeid.ID{1}}, member.NodeRecordConfig{Advertise: member.Addresses{Raft: "a:1"}})
	b := &raftlogv1.Member{Id: []byte("B"), Tag: "B"}
	pinger := NewPinger(Config{Record: own, Table: NewTable(func() []*raftlogv1.Member { return []*raftlogv1.Member{b} }, own)})
	for _, tt := range []struct {
		outOfReach [][]byte
		warned     bool
	}{{nil, false}, {[][]byte{[]byte("C")}, false}, {[][]byte{[]byte("C"), own.ID()}, true}} {
		pinger.contacts["B"] = Contact{Reply: &peerv1.PingResponse{OutOfReach: tt.outOfReach}}
		if got := strings.Join(pinger.Unreached(), ""); strings.Contains(got, " B at a:1") != tt.warned || tt.warned != (got != "") {
			t.Errorf("B says that %q do not answer: %q", tt.outOfReach, got)
		}
	}
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
