package leader

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

func testID(b byte) nodeid.ID { return nodeid.ID(bytes.Repeat([]byte{b}, nodeid.Size)) }

func testMember(tag string, b byte) *raftlogv1.Member {
	id := testID(b)
	return &raftlogv1.Member{Id: id.Bytes(), Tag: tag, GrpcAddress: tag + ":7400", RaftAddress: tag + ":7401", LogFormat: 1}
}

// fakeRaft is a Raft configuration, and what was done to it.
type fakeRaft struct {
	servers []raft.Server
	log     []string
	// broken makes every change fail.
	broken    bool
	transfers int
}

func newFakeRaft(voters ...nodeid.ID) *fakeRaft {
	f := &fakeRaft{}
	for _, id := range voters {
		f.servers = append(f.servers, raft.Server{ID: raft.ServerID(id.String()), Suffrage: raft.Voter})
	}
	return f
}

func (f *fakeRaft) Configuration() ([]raft.Server, error) { return slices.Clone(f.servers), nil }

func (f *fakeRaft) change(what string, id raft.ServerID, do func(i int)) error {
	if f.broken {
		return errors.New("broken")
	}
	f.log = append(f.log, what+" "+string(id[:2]))
	do(slices.IndexFunc(f.servers, func(s raft.Server) bool { return s.ID == id }))
	return nil
}

func (f *fakeRaft) AddVoter(id raft.ServerID) error {
	return f.change("voter", id, func(i int) {
		if i < 0 {
			panic("a server got a vote at once")
		}
		f.servers[i].Suffrage = raft.Voter
	})
}

func (f *fakeRaft) AddNonvoter(id raft.ServerID) error {
	return f.change("nonvoter", id, func(int) {
		f.servers = append(f.servers, raft.Server{ID: id, Suffrage: raft.Nonvoter})
	})
}

func (f *fakeRaft) DemoteVoter(id raft.ServerID) error {
	return f.change("demote", id, func(i int) { f.servers[i].Suffrage = raft.Nonvoter })
}

func (f *fakeRaft) RemoveServer(id raft.ServerID) error {
	return f.change("remove", id, func(i int) { f.servers = slices.Delete(f.servers, i, i+1) })
}

func (f *fakeRaft) ToAny(context.Context) error {
	f.transfers++
	if f.broken {
		return errors.New("broken")
	}
	return nil
}

// bench is a Reconciler with fakes around it. Who votes in Raft at first votes in the table.
type bench struct {
	raft    *fakeRaft
	members []*raftlogv1.Member
	applied map[string]uint64
	// match is that of all servers.
	match, commit uint64
	// lone says that a vote would cost the quorum.
	lone     error
	promoted []string
	format   uint32
	raised   uint32
	r        *reconciler
}

func newBench(fake *fakeRaft, members ...*raftlogv1.Member) *bench {
	for _, m := range members {
		m.Voter = m.Voter || !m.GetWatcher() && !m.GetRemoved() && slices.ContainsFunc(fake.servers, func(s raft.Server) bool {
			return s.ID == member.ServerID(m.GetId()) && s.Suffrage == raft.Voter
		})
	}
	b := &bench{raft: fake, members: members, applied: map[string]uint64{}, match: 10_000, commit: 10_000, format: 1}
	b.r = &reconciler{
		Self: testID(1), Raft: fake, Members: func() []*raftlogv1.Member { return b.members },
		AppliedIndex: func(_ context.Context, m *raftlogv1.Member) (uint64, error) {
			if bytes.Equal(m.GetId(), testID(1).Bytes()) {
				panic("the leader asks itself") // It would take itself for another process of its id.
			}
			applied, ok := b.applied[m.GetTag()]
			if !ok {
				return 0, errors.New("does not answer")
			}
			return applied, nil
		},
		Match:   func(raft.ServerID) uint64 { return b.match },
		Commit:  func() uint64 { return b.commit },
		MayVote: func(context.Context, *raftlogv1.Member) error { return b.lone },
		Promote: func(_ context.Context, id []byte) error {
			for _, m := range b.members {
				if string(m.GetId()) == string(id) {
					m.Voter = true
					b.promoted = append(b.promoted, m.GetTag())
				}
			}
			return nil
		},
		Format: func() uint32 { return b.format },
		RaiseFormat: func(_ context.Context, f uint32) error {
			b.format, b.raised = f, f
			return nil
		},
		Stable: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}
	return b
}

// run lets the loop's steps follow one another while script says what happens in
// between.
func (b *bench) run(t *testing.T, script func(wait func(time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b.r.caughtUp = map[raft.ServerID]time.Time{}
		script(func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(reconcileTick) {
				_ = b.r.step(t.Context()) // What fails is tried again.
			}
		})
	})
}

func TestReconcileNewcomer(t *testing.T) {
	d := testMember("D", 4)
	b := newBench(newFakeRaft(testID(1)), testMember("A", 1), d)
	b.run(t, func(wait func(time.Duration)) {
		wait(time.Minute) // It does not answer: it gets no vote.
		if diff := cmp.Diff([]string{"nonvoter 04"}, b.raft.log); diff != "" {
			t.Error(diff)
		}
		b.applied["D"] = 5000 // Behind.
		wait(time.Minute)
		b.applied["D"] = 9900
		wait(1500 * time.Millisecond)
		b.applied["D"] = 5000 // It falls back: the count starts again.
		wait(time.Second)
		b.applied["D"] = 9900
		wait(1500 * time.Millisecond)
		if len(b.promoted) > 0 {
			t.Errorf("promoted %v too early", b.promoted)
		}
		wait(time.Second)
		if diff := cmp.Diff([]string{"nonvoter 04", "voter 04"}, b.raft.log); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"D"}, b.promoted); diff != "" {
			t.Error(diff)
		}
	})
}

// TestReconcileVoteWithoutReplication: a newcomer whose state is near gets no vote as long as
// the leader's entries do not reach it, the one with its vote among them. A young cluster's
// few entries make no difference.
func TestReconcileVoteWithoutReplication(t *testing.T) {
	for _, commit := range []uint64{20, 10_000} {
		b := newBench(newFakeRaft(testID(1)), testMember("A", 1), testMember("D", 4))
		b.commit, b.applied["D"], b.match = commit, commit, 0
		b.run(t, func(wait func(time.Duration)) {
			wait(time.Minute)
			b.match = commit
			wait(1500 * time.Millisecond)
			b.match = 0 // The count starts again.
			wait(100 * time.Millisecond)
			b.match = commit
			wait(1500 * time.Millisecond)
			if len(b.promoted) > 0 {
				t.Errorf("promoted %v too early", b.promoted)
			}
			wait(time.Second)
		})
		if diff := cmp.Diff([]string{"nonvoter 04", "voter 04"}, b.raft.log); diff != "" {
			t.Error(diff)
		}
	}
}

// TestReconcileVoteThatLosesTheQuorum: a newcomer that has caught up gets no vote, in the
// table or in Raft, as long as too few would answer with it.
func TestReconcileVoteThatLosesTheQuorum(t *testing.T) {
	promoted := testMember("E", 5)
	promoted.Voter = true
	b := newBench(newFakeRaft(testID(1)), testMember("A", 1), testMember("D", 4), promoted)
	b.applied["D"], b.applied["E"], b.lone = 10_000, 10_000, errors.New("too few answer")
	b.run(t, func(wait func(time.Duration)) {
		wait(time.Minute)
		if diff := cmp.Diff([]string{"nonvoter 04", "nonvoter 05"}, b.raft.log); diff != "" || len(b.promoted) > 0 {
			t.Errorf("promoted %v; %s", b.promoted, diff)
		}
		b.lone = nil
		wait(time.Second)
	})
	if diff := cmp.Diff([]string{"nonvoter 04", "nonvoter 05", "voter 04", "voter 05"}, b.raft.log); diff != "" {
		t.Error(diff)
	}
}

// TestReconcileWatcher never gives a watcher a vote.
func TestReconcileWatcher(t *testing.T) {
	w := testMember("W", 4)
	w.Watcher = true
	b := newBench(newFakeRaft(testID(1)), testMember("A", 1), w)
	b.applied["W"] = 10_000
	b.run(t, func(wait func(time.Duration)) { wait(time.Hour) })
	if diff := cmp.Diff([]string{"nonvoter 04"}, b.raft.log); diff != "" {
		t.Error(diff)
	}
}

// TestReconcileDemotion takes the vote of a member that has become a watcher, and gives it again also if the table was
// changed twice before Raft's configuration followed.
func TestReconcileDemotion(t *testing.T) {
	d := testMember("D", 4)
	d.Watcher = true
	b := newBench(newFakeRaft(testID(1), testID(4)), testMember("A", 1), d)
	b.applied["D"] = 10_000
	b.run(t, func(wait func(time.Duration)) {
		wait(time.Second)
		d.Watcher = false
		wait(5 * time.Second)
		d.Watcher, d.Voter = false, false
		wait(5 * time.Second)
	})
	if diff := cmp.Diff([]string{"demote 04", "voter 04"}, b.raft.log); diff != "" {
		t.Error(diff)
	}
	if !d.GetVoter() {
		t.Error("the table has no vote for D")
	}
}

// TestReconcileOwnDemotionTakenBack: a leader whose demotion is taken back before Raft's configuration followed has its
// vote in the table again, and asks nobody.
func TestReconcileOwnDemotionTakenBack(t *testing.T) {
	self := testMember("A", 1)
	b := newBench(newFakeRaft(testID(1), testID(2)), self, testMember("B", 2))
	self.Watcher, self.Voter = true, false
	b.run(t, func(wait func(time.Duration)) {
		wait(reconcileTick)
		self.Watcher = false
		wait(reconcileTick)
	})
	if !self.GetVoter() || len(b.raft.log) > 0 || b.raft.transfers != 1 {
		t.Errorf("voter %v, %d transfers, changes %v", self.GetVoter(), b.raft.transfers, b.raft.log)
	}
}

// TestReconcileOwnVoteTaken: a leader that takes its own vote leads until that is committed. If it is to vote again then,
// the next leader sees to it.
func TestReconcileOwnVoteTaken(t *testing.T) {
	self := testMember("A", 1)
	b := newBench(newFakeRaft(testID(2)), self, testMember("B", 2))
	b.raft.servers = append(b.raft.servers, raft.Server{ID: raft.ServerID(testID(1).String()), Suffrage: raft.Nonvoter})
	b.run(t, func(wait func(time.Duration)) { wait(time.Minute) })
	if self.GetVoter() || len(b.raft.log) > 0 {
		t.Errorf("voter %v, changes %v", self.GetVoter(), b.raft.log)
	}
}

// TestReconcileOwnDemotion transfers leadership first, and demotes itself only if that fails again and again.
func TestReconcileOwnDemotion(t *testing.T) {
	self := testMember("A", 1)
	self.Watcher = true
	b := newBench(newFakeRaft(testID(1), testID(2)), self, testMember("B", 2))
	b.run(t, func(wait func(time.Duration)) { wait(10 * time.Second) })
	if diff := cmp.Diff([]string{"demote 01"}, b.raft.log); diff != "" || b.raft.transfers != maxTransfers {
		t.Errorf("%d transfers%s", b.raft.transfers, diff)
	}
}

// TestReconcileFinishesForAnother makes a voter of a member that an earlier
// leader promoted in the table only.
func TestReconcileFinishesForAnother(t *testing.T) {
	d := testMember("D", 4)
	d.Voter = true
	b := newBench(newFakeRaft(testID(1)), testMember("A", 1), d)
	b.applied["D"] = 10_000
	b.run(t, func(wait func(time.Duration)) { wait(5 * time.Second) })
	if diff := cmp.Diff([]string{"nonvoter 04", "voter 04"}, b.raft.log); diff != "" {
		t.Error(diff)
	}
	if len(b.promoted) > 0 {
		t.Errorf("promoted %v again", b.promoted)
	}
}

func TestReconcileRemoval(t *testing.T) {
	gone := testMember("B", 2)
	gone.Removed = true
	b := newBench(newFakeRaft(testID(1), testID(2), testID(3)), testMember("A", 1), gone, testMember("C", 3), testMember("D", 4))
	b.run(t, func(wait func(time.Duration)) { wait(time.Second) })
	if diff := cmp.Diff([]string{"remove 02", "nonvoter 04"}, b.raft.log); diff != "" {
		t.Error(diff)
	}
}

// TestReconcileOwnRemoval transfers leadership first, and removes itself only if that
// fails again and again.
func TestReconcileOwnRemoval(t *testing.T) {
	self := testMember("A", 1)
	self.Removed = true
	b := newBench(newFakeRaft(testID(1), testID(2)), self, testMember("B", 2))
	b.run(t, func(wait func(time.Duration)) {
		wait(50 * time.Millisecond)
		if b.raft.transfers != 1 || len(b.raft.log) > 0 {
			t.Errorf("%d transfers, changes %v; want one", b.raft.transfers, b.raft.log)
		}
		b.raft.broken = true
		wait(time.Second)
		b.raft.broken = false
		wait(time.Second)
	})
	if diff := cmp.Diff([]string{"remove 01"}, b.raft.log); diff != "" {
		t.Error(diff)
	}
	if b.raft.transfers != maxTransfers {
		t.Errorf("%d transfers, want %d", b.raft.transfers, maxTransfers)
	}
}

func TestReconcileFormat(t *testing.T) {
	old := testMember("B", 2)
	a := testMember("A", 1)
	a.LogFormat = 3
	gone := testMember("C", 3)
	gone.Removed = true
	b := newBench(newFakeRaft(testID(1), testID(2)), a, old, gone)
	b.run(t, func(wait func(time.Duration)) {
		wait(time.Second)
		if b.raised != 0 {
			t.Errorf("raised to %d with an old member", b.raised)
		}
		old.LogFormat = 2
		wait(time.Second)
	})
	if b.raised != 2 {
		t.Errorf("raised to %d, want 2", b.raised)
	}
}

// TestReconcileFormatNotRaised: a format that cannot be raised, say because a disk is
// full, is tried at each look. The log tells of the first failure and then now and then,
// and of the raise once it has come about.
func TestReconcileFormatNotRaised(t *testing.T) {
	a := testMember("A", 1)
	a.LogFormat = 2
	b := newBench(newFakeRaft(testID(1)), a)
	var log bytes.Buffer
	b.r.Logger = slog.New(slog.NewTextHandler(&log, nil))
	raise, full, tries := b.r.RaiseFormat, true, 0
	b.r.RaiseFormat = func(ctx context.Context, f uint32) error {
		if tries++; full {
			return errors.New("the disk is full")
		}
		return raise(ctx, f)
	}
	synctest.Test(t, func(t *testing.T) {
		works := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			established := make(chan struct{})
			close(established)
			duty.New(b.r.Logger, duty.NewBeats(), b.r.duty()).Run(ctx, func() bool { return true }, established)
		}
		works(2 * member.ComplainAfter)
		if told := strings.Count(log.String(), "\n"); tries < 10 || told < 1 || told > 3 || strings.Contains(log.String(), "all members") {
			t.Errorf("%d tries, and %d lines:\n%s", tries, told, log.String())
		}
		log.Reset()
		full = false
		works(member.ComplainAfter)
	})
	if told := log.String(); b.raised != 2 || strings.Count(told, "\n") != 1 || !strings.Contains(told, "all members") {
		t.Errorf("raised to %d, and told:\n%s", b.raised, told)
	}
}

// TestReconcileConverges starts from any table and any configuration: in the end
// they agree, and no server ever got a vote at once (the fake panics then).
func TestReconcileConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(newFakeRaft(testID(1)), testMember("A", 1))
		b.members[0].Voter = rapid.Bool().Draw(rt, "own voter")
		b.r.Stable, b.r.caughtUp = 0, map[raft.ServerID]time.Time{}
		for i := byte(2); i < 7; i++ {
			m := testMember(string('A'+rune(i)-1), i)
			m.Watcher = rapid.Bool().Draw(rt, "watcher")
			m.Voter = !m.Watcher && rapid.Bool().Draw(rt, "voter")
			m.Removed = rapid.Bool().Draw(rt, "removed")
			if rapid.Bool().Draw(rt, "in raft") {
				suffrage := raft.Nonvoter
				if rapid.Bool().Draw(rt, "votes") {
					suffrage = raft.Voter
				}
				b.raft.servers = append(b.raft.servers, raft.Server{ID: raft.ServerID(testID(i).String()), Suffrage: suffrage})
			}
			b.members = append(b.members, m)
			b.applied[m.GetTag()] = b.commit
		}
		for range 20 {
			if err := b.r.step(t.Context()); err != nil {
				rt.Fatalf("step: %v", err)
			}
		}
		for _, m := range b.members {
			i := slices.IndexFunc(b.raft.servers, func(s raft.Server) bool { return s.ID == member.ServerID(m.GetId()) })
			switch {
			case m.GetRemoved() != (i < 0):
				rt.Errorf("%s: removed %v, in raft %v", m.GetTag(), m.GetRemoved(), i >= 0)
			case i >= 0 && (m.GetWatcher() == m.GetVoter() || m.GetWatcher() == (b.raft.servers[i].Suffrage == raft.Voter)):
				rt.Errorf("%s: watcher %v, voter %v, suffrage %v", m.GetTag(), m.GetWatcher(), m.GetVoter(), b.raft.servers[i].Suffrage)
			}
		}
	})
}
