package transport

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// TestOthersThatCouldElectALeader: the node itself, which is a, does not count. It
// would refuse its vote to a log that ends before its own.
func TestOthersThatCouldElectALeader(t *testing.T) {
	for _, tt := range []struct {
		voters, answer string
		want           bool
	}{
		{"a", "", false},
		{"ab", "b", false},
		{"abc", "bc", true},
		{"abc", "b", false},
		{"abcd", "bcd", true},
		{"abcd", "bc", false},
		{"abcde", "bcd", true},
		{"abcde", "bc", false},
		{"bc", "bc", true},
	} {
		tr := &Transport{answers: newAnswers()}
		since := tr.SendSeq()
		for _, id := range strings.Split(tt.answer, "") {
			tr.answers.answered(raft.ServerID(id), tr.answers.next(), 7, 7, 0)
		}
		var voters []raft.ServerID
		for _, id := range strings.Split(tt.voters, "") {
			voters = append(voters, raft.ServerID(id))
		}
		if got := tr.OthersAnswered(since, 7, voters); got != tt.want {
			t.Errorf("of %s, %s answer: %v", tt.voters, tt.answer, got)
		}
	}
}

// TestBackoffEndsEarlyWithoutAnotherLeader: the node that stepped down may be the only node
// that can be elected, at once or after the next leader is gone.
func TestBackoffEndsEarlyWithoutAnotherLeader(t *testing.T) {
	now := time.Unix(1000, 0)
	var r stepDown
	if !r.canCampaign(now, 7, now) {
		t.Error("a node that never stepped down does not campaign")
	}
	r.begin(now, 7, 3*time.Second, 10*time.Second)
	for _, tt := range []struct {
		name         string
		after, heard time.Duration
		led          uint64
		want         bool
	}{
		{"too early for the others", 2 * time.Second, 0, 6, false},
		{"nobody led", 3 * time.Second, 0, 6, true},
		{"an old leader does not know yet", 3 * time.Second, 3 * time.Second, 6, true},
		{"another leads", 3 * time.Second, 2900 * time.Millisecond, 8, false},
		{"another leads for long", 9 * time.Second, 9 * time.Second, 8, false},
		{"another may still lead", 6900 * time.Millisecond, 4 * time.Second, 8, false},
		{"another led, and is gone", 7 * time.Second, 4 * time.Second, 8, true},
		{"another was gone at once", 3 * time.Second, 0, 8, true},
		{"the end", 10 * time.Second, 10 * time.Second, 8, true},
	} {
		if got := r.canCampaign(now.Add(tt.after), tt.led, now.Add(tt.heard)); got != tt.want {
			t.Errorf("%s: canCampaign is %v", tt.name, got)
		}
	}
}

// TestWhenALeaderWasHeard: requests of former leaders do not count.
func TestWhenALeaderWasHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := bareInbound(nil)
		begun := time.Now()
		for _, tt := range []struct {
			command any
			led     uint64
			heard   time.Duration
		}{
			{&raft.AppendEntriesRequest{Term: 5}, 5, 1 * time.Second},
			{&raft.RequestVoteRequest{Term: 6}, 5, 1 * time.Second},
			{&raft.InstallSnapshotRequest{Term: 6}, 6, 3 * time.Second},
			{&raft.AppendEntriesRequest{Term: 5}, 6, 3 * time.Second},
			{&raft.AppendEntriesRequest{Term: 6}, 6, 5 * time.Second},
		} {
			time.Sleep(time.Second)
			i.inspect(raft.RPC{Command: tt.command})
			if c := i.contact(); c.Term != tt.led || c.Heard.Sub(begun) != tt.heard {
				t.Errorf("after %+v: term %d, heard after %v", tt.command, c.Term, c.Heard.Sub(begun))
			}
		}
	})
}
