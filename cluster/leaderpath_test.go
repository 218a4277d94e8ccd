package cluster

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// pathRig is a follower's path to the leader A.
type pathRig struct {
	leaderPath
	leader string
	silent time.Time
}

func newPathRig() *pathRig {
	a := nodeid.ID{1}
	record := member.NewNodeRecord(&member.Record{ID: nodeid.ID{2}}, member.NodeRecordConfig{})
	all := func() []*raftlogv1.Member {
		return []*raftlogv1.Member{{Id: a[:], Tag: "A", GrpcAddress: "a:2", RaftAddress: "a:1"}}
	}
	r := &pathRig{leader: a.String()}
	r.hint, r.table, r.self, r.wait = new(peers.Hint), peers.NewTable(all, record), record.Name(), 2*time.Second
	r.silence = func([]byte) time.Duration {
		if r.silent.IsZero() {
			return 0
		}
		return time.Since(r.silent)
	}
	return r
}

// after judges after a time in which Raft here knew the leader by this name.
func (r *pathRig) after(d time.Duration, raft, leader string) string {
	r.hint.Choose(time.Now(), raft, r.self)
	time.Sleep(d)
	r.look(time.Now(), leader)
	if err := r.err(); err != nil {
		return err.Error()
	}
	return ""
}

// send sends a group that fails after a time.
func (r *pathRig) send(d time.Duration, err error) {
	r.groups.begin(time.Now(), r.leader)
	time.Sleep(d)
	r.groups.end(time.Now(), err)
}

// TestALeaderThatIsNotReached: a node names it, and refuses callers with that, but for one that answers again, or another one.
func TestALeaderThatIsNotReached(t *testing.T) {
	runPaths(t, []pathTest{
		{"all is well", func(r *pathRig) string { return r.after(time.Hour, r.leader, r.leader) }, "", false, false},
		{"this node leads", func(r *pathRig) string { return r.after(time.Hour, r.self, r.self) }, "", false, false},
		{"an election", func(r *pathRig) string { return r.after(outageGrace-1, "", "") }, "", false, false},
		{"nobody is elected", func(r *pathRig) string { return r.after(outageGrace, "", "") }, "no leader has been known for 5s", false, false},
		{
			"one link is cut",
			func(r *pathRig) string { r.silent = time.Now(); return r.after(peers.SilentAfter, "", r.leader) },
			"the leader A at a:1 has not answered for 3s", true, true,
		},
		{
			"a ping was lost",
			func(r *pathRig) string {
				r.silent = time.Now()
				return r.after(peers.SilentAfter-1, r.leader, r.leader)
			},
			"", false, false,
		},
		{
			"only the leader's messages do not arrive",
			func(r *pathRig) string { return r.after(outageGrace, "", r.leader) },
			"the leader A at a:1 has not reached this node for 5s", false, false,
		},
	})
}

// TestWhyTheLogIsNotServed: it is the leader that does not answer this node's groups of calls.
func TestWhyTheLogIsNotServed(t *testing.T) {
	refused := outcome.NewNotApplied(outcome.NotLeader, errors.New("connection refused"))
	runPaths(t, []pathTest{
		{
			"pings are lost, and groups answered",
			func(r *pathRig) string {
				r.silent = time.Now()
				r.send(peers.SilentAfter, nil)
				return r.after(time.Second, r.leader, r.leader)
			},
			"", false, false,
		},
		{
			"a group is not answered",
			func(r *pathRig) string {
				r.groups.begin(time.Now(), r.leader)
				return r.after(2*time.Second, r.leader, r.leader)
			},
			"the leader A at a:1 has not answered for 2s", false, true,
		},
		{
			"each group fails at once",
			func(r *pathRig) string {
				for range 30 {
					r.send(0, refused)
					time.Sleep(100 * time.Millisecond)
				}
				return r.after(0, r.leader, r.leader)
			},
			"the leader A at a:1 has not answered for 2s", false, true,
		},
		{
			"a group failed, and the next one long after",
			func(r *pathRig) string {
				r.send(0, refused)
				time.Sleep(time.Minute)
				r.send(time.Second, refused)
				return r.after(0, r.leader, r.leader)
			},
			"", false, false,
		},
		{
			"the newest group was answered",
			func(r *pathRig) string {
				r.send(3*time.Second, refused)
				r.send(time.Second, nil)
				return r.after(time.Minute, r.leader, r.leader)
			},
			"", false, false,
		},
		{
			"the leader has no room",
			func(r *pathRig) string {
				r.send(3*time.Second, outcome.NewNotApplied(outcome.StorageFull, nil))
				return r.after(0, r.leader, r.leader)
			},
			"", false, false,
		},
		{
			"another leads",
			func(r *pathRig) string { r.send(3*time.Second, refused); return r.after(0, r.self, r.self) },
			"", false, false,
		},
	})
}

// pathTest is a while of a node's life.
type pathTest struct {
	name string
	// play ends with a look, and returns what it says.
	play func(r *pathRig) string
	want string
	// atOnce and explained say that calls are refused for the leader, before or after they were tried.
	atOnce, explained bool
}

func (tt pathTest) run(t *testing.T) {
	r := newPathRig()
	if got := tt.play(r); got != tt.want {
		t.Errorf("it says %q, want %q", got, tt.want)
	}
	if got := outcome.ReasonOf(r.refusal()) == outcome.LeaderUnreachable; got != tt.atOnce {
		t.Errorf("refused at once: %v", r.refusal())
	}
	for reason, may := range map[outcome.Reason]bool{
		outcome.NoQuorum: true, outcome.NotLeader: true, outcome.Deadline: true, outcome.Overloaded: false,
	} {
		err := r.explain(outcome.NewNotApplied(reason, nil))
		if got := outcome.ReasonOf(err) == outcome.LeaderUnreachable; got != (may && tt.explained) ||
			got && !strings.Contains(err.Error(), "the leader A at a:1") {
			t.Errorf("%v is explained by: %v", reason, err)
		}
	}
	if unknown := outcome.NewUnknown(outcome.NoQuorum, nil); r.explain(unknown) != error(unknown) {
		t.Errorf("an unknown outcome became %v", r.explain(unknown))
	}
}

func runPaths(t *testing.T, tests []pathTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { synctest.Test(t, tt.run) })
	}
}
