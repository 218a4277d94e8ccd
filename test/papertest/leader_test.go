package papertest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// TestALeaderSendsHeartbeats: figure 2, leaders: "Upon election: send initial empty
// AppendEntries RPCs (heartbeat) to each server; repeat during idle periods to prevent
// election timeouts".
func TestALeaderSendsHeartbeats(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1, campaigns: true}, func(p *Node) {
		p.lead("B", "C")
		for range 10 {
			time.Sleep(time.Second / 2)
			for _, tag := range []string{"B", "C"} {
				if len(Received[*raft.AppendEntriesRequest](p, tag)) == 0 {
					t.Errorf("no heartbeat for %s", tag)
				}
			}
		}
		p.wantState(raft.Leader)
	})
}

// TestRespondAfterTheEntryIsApplied: figure 2, leaders: "If command received from
// client: append entry to local log, respond after entry applied to state machine".
func TestRespondAfterTheEntryIsApplied(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.lead("B")
		p.Others["B"].answer(voteOnly)
		answered := make(chan error, 1)
		go func() { answered <- p.Raft.Apply([]byte("x"), 0).Error() }()
		time.Sleep(time.Second)
		p.wantLog(1, 1, 2, 2)
		if len(answered) > 0 {
			t.Error("answered before a majority has the entry")
		}
		p.Others["B"].answer(grantAll)
		p.Must(<-answered)
		p.wantApplied("2@1", "x")
	})
}

// TestALeaderWritesBesideSending: thesis 10.2.1: "The leader can write its log to disk in
// parallel with replicating to the followers". The leader commits no entry before its own disk
// has it, however soon the others have.
func TestALeaderWritesBesideSending(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.lead("B")
		p.Disk.Slow(time.Second)
		answered := make(chan error, 1)
		go func() { answered <- p.Raft.Apply([]byte("y"), 0).Error() }()
		time.Sleep(time.Second / 2)
		sent := Received[*raft.AppendEntriesRequest](p, "B")
		if last := sent[len(sent)-1]; len(last.Entries) != 1 || len(answered) > 0 {
			t.Errorf("sent is %+v while the entry is written, answered are %d", last, len(answered))
		}
		p.wantLog(1, 1, 2)
		p.Must(<-answered)
		p.wantLog(1, 1, 2, 2)
	})
}

// TestAConfigurationIsOnTheLeadersDiskFirst: a leader counts by a configuration as soon as it is
// in its log (section 6). Where it is the only voter that is left, no answer is waited for.
func TestAConfigurationIsOnTheLeadersDiskFirst(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1, Voters: []string{"A", "B"}}, func(p *Node) {
		p.lead("B")
		p.Disk.Slow(time.Second)
		removed := make(chan error, 1)
		go func() { removed <- p.Raft.RemoveServer(ID("B"), 0, 0).Error() }()
		time.Sleep(time.Second / 2)
		if len(removed) > 0 {
			t.Error("the configuration is committed, and on no disk")
		}
		p.Must(<-removed)
		p.wantLog(1, 1, 2, 2)
	})
}

// TestDecrementNextIndexAndRetry: figure 2, leaders: "If AppendEntries fails because of
// log inconsistency: decrement nextIndex and retry".
func TestDecrementNextIndexAndRetry(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1, 1, 1}, Term: 1}, func(p *Node) {
		p.Others["B"].answer(refuseAfter(2))
		p.timeoutNow("B")
		p.wantState(raft.Leader)
		time.Sleep(time.Second)
		var prevs []uint64
		for _, r := range Received[*raft.AppendEntriesRequest](p, "B") {
			prevs = append(prevs, r.PrevLogEntry)
		}
		if len(prevs) < 2 || prevs[0] != 4 || prevs[1] != 2 {
			t.Errorf("the entries before those sent are %v", prevs)
		}
		p.wantApplied("2@1", "3@1", "4@1")
	})
}

// TestOnlyTheLeadersTermIsCommittedByCounting: section 5.4.2: "Raft never commits log
// entries from previous terms by counting replicas. Only log entries from the leader's
// current term are committed by counting replicas".
func TestOnlyTheLeadersTermIsCommittedByCounting(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1, 1}, Term: 1, most: 2}, func(p *Node) {
		last := uint64(1)
		p.Others["B"].answer(func(request any) any {
			r, ok := request.(*raft.AppendEntriesRequest)
			switch {
			case ok && len(r.Entries) > 0 && last == 3:
				return nil // It does not get the leader's own entry.
			case ok && r.PrevLogEntry == 1:
				last = 3
			}
			return refuseAfter(last)(request)
		})
		p.timeoutNow("B")
		p.wantState(raft.Leader)
		time.Sleep(time.Second)
		p.wantApplied()
		if last != 3 {
			t.Error("the older entries did not reach a majority")
		}
		p.Others["B"].answer(grantAll)
		time.Sleep(10 * time.Second)
		p.wantApplied("2@1", "3@1")
	})
}

// TestALeaderNeverDeletes: figure 3, leader append-only: "a leader never overwrites or
// deletes entries in its log; it only appends new entries".
func TestALeaderNeverDeletes(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1, 1}, Term: 1}, func(p *Node) {
		p.lead("B")
		if got := p.Append("C", 1, 1, 1, 3, Entry(2, 1)); got.Success {
			t.Errorf("the answer to an older leader is %+v", got)
		}
		p.wantLog(1, 1, 1, 2)
		p.wantState(raft.Leader)
	})
}

// TestAFormerLeadersEntriesAreOfOneLog: figure 3, log matching: "if two logs contain an
// entry with the same index and term, then the logs are identical in all entries up
// through the given index". The library reads the entries of a request one by one, and
// a new leader may replace them in between; see Transport.AppendEntries.
func TestAFormerLeadersEntriesAreOfOneLog(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1, 1}, Term: 1, Voters: []string{"A", "B", "C", "D", "E"}}, func(p *Node) {
		replaced := make(chan struct{})
		reading := func(index uint64) {
			if index == 4 { // The entry before has been read.
				<-replaced
			}
		}
		p.library.reading.Store(&reading)
		p.lead("B", "C")
		synctest.Wait()
		if got := p.Append("D", 7, 2, 1, 0, Entry(3, 7), Entry(4, 7)); !got.Success {
			t.Fatalf("the answer to the new leader is %+v", got)
		}
		close(replaced)
		time.Sleep(time.Second)
		for _, r := range Received[*raft.AppendEntriesRequest](p, "B") {
			if len(r.Entries) > 0 && r.PrevLogTerm == 1 && r.Entries[0].Term == 7 {
				t.Errorf("entry %d of term %d is sent after entry %d of term %d", r.Entries[0].Index, r.Entries[0].Term, r.PrevLogEntry, r.PrevLogTerm)
			}
		}
	})
}

// TestAChangeWaitsForAnEntryOfTheTerm: thesis 4.1, as corrected: a leader may not append
// a configuration entry until it has committed one of its own term; and "a leader may
// not begin another change until the previous one is committed".
func TestAChangeWaitsForAnEntryOfTheTerm(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.Others["B"].answer(voteOnly)
		p.timeoutNow("B")
		p.wantState(raft.Leader)
		changed := make(chan error, 2)
		for _, tag := range []string{"D", "E"} {
			go func() { changed <- p.Raft.AddVoter(ID(tag), raft.ServerAddress(ID(tag)), 0, 0).Error() }()
		}
		time.Sleep(time.Second)
		p.wantLog(1, 1, 2)
		// Two of the four voters that there are then are no majority. An answer at once
		// would be counted by the configuration before, see cluster/raftguard/README.md.
		p.Others["B"].answer(grantLater)
		time.Sleep(10 * time.Second)
		p.wantLog(1, 1, 2, 2)
		p.Others["C"].answer(grantAll)
		p.Must(<-changed)
		p.Must(<-changed)
		p.wantLog(1, 1, 2, 2, 2)
	})
}

// TestNonvotersDoNotCount: thesis 4.2.1: a new server joins "as a non-voting member", and
// is "not yet counted towards majorities for voting or commitment purposes".
func TestNonvotersDoNotCount(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.lead("B")
		p.Others["D"].answer(grantAll)
		p.Must(p.Raft.AddNonvoter(ID("D"), raft.ServerAddress(ID("D")), 0, 0).Error())
		if got := p.Vote("D", 9, 9, 9); got.Granted {
			t.Error("a vote for a server that has none")
		}
	})
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.lead("B")
		p.Others["D"].answer(grantAll)
		p.Must(p.Raft.AddNonvoter(ID("D"), raft.ServerAddress(ID("D")), 0, 0).Error())
		p.Others["B"].answer(voteOnly)
		commit := p.Raft.CommitIndex()
		p.Raft.Apply([]byte("x"), 0)
		time.Sleep(time.Second)
		if got := p.Raft.CommitIndex(); got != commit {
			t.Error("a server without a vote made a majority")
		}
	})
}

// TestARemovedLeaderStepsDownWhenThatIsCommitted: thesis 4.2.2: "a leader that is removed
// from the configuration steps down once the C_new entry is committed"; and it "does
// not count itself in majorities".
func TestARemovedLeaderStepsDownWhenThatIsCommitted(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.lead("B")
		// The library counts by the old configuration until it has passed the entry to
		// its senders: B answers when the leader has done both.
		p.Others["B"].answer(voteOnly)
		removed := p.Raft.RemoveServer(ID("A"), 0, 0)
		synctest.Wait()
		p.Others["B"].answer(grantAll)
		time.Sleep(time.Minute)
		p.wantState(raft.Leader)
		p.Others["C"].answer(grantAll)
		if err := removed.Error(); err != nil && !errors.Is(err, raft.ErrRaftShutdown) {
			t.Error(err)
		}
		p.wantState(raft.Shutdown)
	})
}
