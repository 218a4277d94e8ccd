package model

import (
	"errors"
	"strings"
	"testing"

	"github.com/idnode/idnode/raftlog"
)

// three is a cluster of A, B and C, of which A leads term 2 and has a first entry.
func three(t *testing.T) *Cluster {
	t.Helper()
	c := NewCluster()
	voters := []string{"A", "B", "C"}
	for _, m := range voters {
		must(t, c.Start(m, Disk{}, false))
		must(t, c.Hear(m, 1))
		must(t, c.Write(m, []Entry{{Index: 1, Term: 1, Kind: Voters, Voters: voters}}))
		must(t, c.Sync(m, 1))
	}
	for _, m := range voters[:2] {
		must(t, c.Hear(m, 2))
		must(t, c.Vote(m, 2, "A"))
	}
	must(t, write(c, "A", 2, 2, 0))
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write has a member write an entry to its disk.
func write(c *Cluster, member string, index, term, digest uint64) error {
	if err := c.Write(member, []Entry{{Index: index, Term: term, Kind: Command, Digest: digest}}); err != nil {
		return err
	}
	return c.Sync(member, index)
}

// A step that must not happen is named, and those before it are allowed.
func TestStepsThatAreNotAllowed(t *testing.T) {
	for _, tt := range []struct {
		name, why string
		before    func(c *Cluster) error
		step      func(c *Cluster) error
	}{
		{"apply what no majority has", ErrUncommitted.Error(), nil, func(c *Cluster) error { return c.Apply("A", 2, 0) }},
		{
			"apply what is not on the member's disk", ErrUnsynced.Error(),
			func(c *Cluster) error { return write(c, "B", 2, 2, 0) }, func(c *Cluster) error { return c.Apply("C", 2, 0) },
		},
		{
			"apply another entry", "applies another entry 2",
			func(c *Cluster) error { return write(c, "B", 2, 2, 0) }, func(c *Cluster) error { return c.Apply("B", 2, 9) },
		},
		{
			"apply an entry again", ErrAgain.Error(),
			func(c *Cluster) error {
				return errors.Join(write(c, "B", 2, 2, 0), c.Apply("B", 1, 0), c.Apply("B", 2, 0))
			},
			func(c *Cluster) error { return c.Apply("B", 2, 0) },
		},
		{"vote twice", "votes twice", nil, func(c *Cluster) error { return c.Vote("B", 2, "B") }},
		{
			"vote for an older log", "votes for a log that ends with entry 1",
			func(c *Cluster) error { return c.Hear("C", 3) }, func(c *Cluster) error { _ = c.Hear("A", 3); return c.Vote("A", 3, "C") },
		},
		{
			"lead without votes", "leads term 3 with 0 of 3 votes",
			func(c *Cluster) error { return c.Hear("B", 3) }, func(c *Cluster) error { return write(c, "B", 2, 3, 0) },
		},
		{
			"lead without what an earlier leader has committed", "leads term 3 without entry 2 of term 2",
			func(c *Cluster) error {
				vote := errors.Join(c.Hear("C", 3), c.Vote("C", 3, "C"), c.Vote("B", 3, "C"))
				return errors.Join(vote, write(c, "B", 2, 2, 0))
			},
			func(c *Cluster) error { return write(c, "C", 2, 3, 0) },
		},
		{
			"make an entry of another's term", "which another leads", nil,
			func(c *Cluster) error { _ = write(c, "B", 2, 2, 0); return write(c, "B", 3, 2, 0) },
		},
		{"write another entry than the leader", "writes another entry 2", nil, func(c *Cluster) error { return write(c, "B", 2, 2, 9) }},
		{"write behind a hole", "writes entry 3 behind 1", nil, func(c *Cluster) error { return write(c, "C", 3, 2, 0) }},
		{
			"delete what is committed", "deletes entry 2 of term 2",
			func(c *Cluster) error { return write(c, "B", 2, 2, 0) }, func(c *Cluster) error { return c.Delete("B", 2, 2) },
		},
		{"take a term back", ErrTermBack.Error(), nil, func(c *Cluster) error { return c.Hear("A", 1) }},
		{"take a snapshot of what is not committed", ErrBeyond.Error(), nil, func(c *Cluster) error { return c.Snapshot("A", 2, 2, nil) }},
		{
			"lose an entry in a crash", "lost entry 2 of term 2", nil,
			func(c *Cluster) error {
				return c.Start("A", Disk{Term: 2, Voted: 2, Candidate: "A", Entries: []Entry{{Index: 1, Term: 1}}}, false)
			},
		},
		{"vote with an older copy of a disk", "votes with an older copy", func(c *Cluster) error {
			return errors.Join(c.Start("B", Disk{Term: 1}, true), c.Hear("B", 9))
		}, func(c *Cluster) error { return c.Vote("B", 9, "A") }},
		{"forget a term in a crash", "forgot term 2", nil, func(c *Cluster) error { return c.Start("A", Disk{Term: 1}, false) }},
		{"forget a vote in a crash", "forgot its vote in term 2", nil, func(c *Cluster) error {
			return c.Start("A", Disk{Term: 2, Voted: 1, Candidate: "C", Entries: []Entry{{Index: 1, Term: 1}, {Index: 2, Term: 2}}}, false)
		}},
		{
			"have an entry that was never written", "never wrote it", nil,
			func(c *Cluster) error {
				return c.Start("C", Disk{Term: 1, Entries: []Entry{{Index: 1, Term: 1}, {Index: 2, Term: 2}}}, false)
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := three(t)
			if tt.before != nil {
				must(t, tt.before(c))
			}
			if err := tt.step(c); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%v, and not %q", err, tt.why)
			}
		})
	}
}

// A vote that reaches the disk as its node crashes was told to nobody. The candidate may ask
// again, and is told then.
func TestAVoteThatACrashKept(t *testing.T) {
	c := three(t)
	for _, m := range []string{"B", "C"} {
		must(t, c.Hear(m, 3))
	}
	must(t, c.Vote("C", 3, "C"))
	must(t, c.Start("B", Disk{Term: 3, Voted: 3, Candidate: "C", Entries: []Entry{{Index: 1, Term: 1}}}, false))
	must(t, write(c, "C", 2, 3, 0))
}

// A candidate asks the others before its own vote is on its disk. Until that is there, one
// that it has asked can have gone on to the next term, and committed in it.
func TestALeaderThatComesLate(t *testing.T) {
	c := three(t)
	must(t, c.Hear("C", 3))
	must(t, c.Hear("B", 3))
	must(t, c.Vote("B", 3, "C"))
	for _, m := range []string{"A", "B"} {
		must(t, c.Hear(m, 4))
		must(t, c.Vote(m, 4, "A"))
	}
	must(t, write(c, "B", 2, 2, 0))
	must(t, write(c, "A", 3, 4, 0))
	must(t, write(c, "B", 3, 4, 0))
	if c.Committed() != 3 {
		t.Fatalf("%d entries are committed", c.Committed())
	}
	must(t, c.Vote("C", 3, "C"))
	must(t, write(c, "C", 2, 3, 0))
}

// After a snapshot was installed in place of its whole log, a voter compares with the log's
// old end, as the library does, until it writes again.
func TestAVoteAfterASnapshotIsInstalled(t *testing.T) {
	for _, tt := range []struct {
		name string
		last uint64 // of the entries of term 2, which only C and D have
		then func(c *Cluster) error
		may  bool
	}{
		{"whose end is that of the log", 2, func(*Cluster) error { return nil }, true},
		{"that ends before the log", 3, func(*Cluster) error { return nil }, true},
		{"and an entry behind it", 2, func(c *Cluster) error { return write(c, "C", 3, 3, 0) }, false},
		{"and a restart", 2, func(c *Cluster) error {
			return c.Start("C", Disk{Term: 3, Voted: 2, Candidate: "C", Index: 2, SnapshotTerm: 3}, false)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCluster()
			voters := []string{"A", "B", "C", "D", "E"}
			for _, m := range voters {
				must(t, errors.Join(c.Start(m, Disk{}, false), c.Hear(m, 1)))
				must(t, c.Write(m, []Entry{{Index: 1, Term: 1, Kind: Voters, Voters: voters}}))
				must(t, c.Sync(m, 1))
			}
			elect := func(leader string, term uint64, by ...string) {
				for _, m := range by {
					must(t, errors.Join(c.Hear(m, term), c.Vote(m, term, leader)))
				}
			}
			elect("C", 2, "C", "D", "E")
			for index := uint64(2); index <= tt.last; index++ {
				must(t, errors.Join(write(c, "C", index, 2, 0), write(c, "D", index, 2, 0)))
			}
			elect("A", 3, "A", "B", "E")
			for _, m := range []string{"A", "B", "E"} {
				must(t, errors.Join(write(c, m, 2, 3, 0), write(c, m, 3, 3, 0)))
			}
			must(t, c.Hear("C", 3))
			must(t, errors.Join(c.Snapshot("C", 2, 3, voters), c.Delete("C", 1, tt.last), c.Deleted("C", 1, tt.last)))
			must(t, tt.then(c))
			must(t, errors.Join(c.Hear("D", 4), c.Hear("C", 4)))
			if err := c.Vote("C", 4, "D"); (err == nil) != tt.may {
				t.Errorf("a vote for a log that ends with entry %d of term 2: %v", tt.last, err)
			}
		})
	}
}

// A group is answered by what was applied of its session before.
func TestAnswersToGroups(t *testing.T) {
	a, operation := []byte("A"), [][]byte{{1}}
	group := func(sequence, acknowledged uint64) raftlog.Group {
		return raftlog.Group{Origin: a, Session: 5, Sequence: sequence, Acknowledged: acknowledged, Operations: operation}
	}
	answer := func(b byte) raftlog.GroupResult {
		return raftlog.GroupResult{Status: raftlog.Applied, Results: [][]byte{{b}}}
	}
	stale, ended := raftlog.GroupResult{Status: raftlog.StaleSequence}, raftlog.GroupResult{Status: raftlog.StaleSession}
	for _, tt := range []struct {
		name          string
		group         raftlog.Group
		right         raftlog.GroupResult
		wrong         []raftlog.GroupResult
		effect, close bool
	}{
		{
			name: "the next", group: group(3, 1), right: answer(3),
			wrong: []raftlog.GroupResult{stale, ended, {Status: raftlog.Applied}}, effect: true,
		},
		{name: "a copy", group: group(2, 1), right: answer(2), wrong: []raftlog.GroupResult{answer(9), stale}},
		{name: "an acknowledged one", group: group(1, 0), right: stale, wrong: []raftlog.GroupResult{answer(1), ended}},
		{name: "one too far ahead", group: group(2+Window, 0), right: stale, wrong: []raftlog.GroupResult{answer(1)}},
		{name: "one of a removed node", group: group(3, 1), right: ended, wrong: []raftlog.GroupResult{answer(3), stale}, close: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, r := range append([]raftlog.GroupResult{tt.right}, tt.wrong...) {
				var s Sessions
				s.Open(a, 5)
				for n := range uint64(2) {
					_, err := s.Answer(6+n, group(1+n, n), answer(byte(1+n)))
					must(t, err)
				}
				if tt.close {
					s.Close(a)
				}
				effect, err := s.Answer(9, tt.group, r)
				if (err == nil) != (i == 0) || i == 0 && effect != tt.effect {
					t.Errorf("answered %v: effect %t, %v", r, effect, err)
				}
			}
		})
	}
}
