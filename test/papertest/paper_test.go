package papertest

// The tests paper_*_test.go check the Raft library, as this program runs it, against
// the Raft paper (figures 2, 3 and 13, sections 5 to 7) and Ongaro's thesis (3.10, 4
// and 9.6). Each is named after the sentence that it checks. cluster/raftguard/README.md has
// the sentences from which the library deviates.

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// TestReplyFalseIfTermIsBelowCurrentTerm: figure 2, AppendEntries RPC, 1, RequestVote
// RPC, 1, and figure 13, 1: "Reply false if term < currentTerm".
func TestReplyFalseIfTermIsBelowCurrentTerm(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 2}, Term: 3}, func(p *Node) {
		if resp := p.Append("B", 2, 2, 2, 2, Entry(3, 2)); resp.Success || resp.Term != 3 {
			t.Errorf("the answer to an append is %+v", resp)
		}
		if resp := p.Vote("B", 2, 9, 2); resp.Granted || resp.Term != 3 {
			t.Errorf("the answer to a vote is %+v", resp)
		}
		if resp := p.preVote("B", 2, 9, 2); resp.Granted || resp.Term != 3 {
			t.Errorf("the answer to a pre-vote is %+v", resp)
		}
		if resp, _ := p.install("B", 2, 9, 2, "A", "B", "C"); resp.Success || resp.Term != 3 {
			t.Errorf("the answer to a snapshot is %+v", resp)
		}
		p.wantLog(1, 2)
		p.wantTerm(3)
		p.wantApplied()
		p.wantWritten("answer", "answer", "answer")
	})
}

// TestReplyFalseIfLogHasNoEntryAtPrevLogIndex: figure 2, AppendEntries RPC, 2: "Reply
// false if log doesn't contain an entry at prevLogIndex whose term matches
// prevLogTerm".
func TestReplyFalseIfLogHasNoEntryAtPrevLogIndex(t *testing.T) {
	for _, prev := range []struct {
		index, term uint64
		want        bool
	}{{1, 1, true}, {2, 2, true}, {3, 2, true}, {2, 1, false}, {3, 1, false}, {3, 3, false}, {4, 2, false}, {9, 3, false}} {
		t.Run(fmt.Sprintf("%d@%d", prev.index, prev.term), func(t *testing.T) {
			Run(t, Options{Terms: []uint64{1, 2, 2}, Term: 3}, func(p *Node) {
				if got := p.Append("B", 3, prev.index, prev.term, 0); got.Success != prev.want {
					t.Errorf("the answer is %+v", got)
				}
				if !prev.want {
					p.Append("B", 3, prev.index, prev.term, 9, Entry(prev.index+1, 3))
					p.wantApplied()
				}
				p.wantLog(1, 2, 2)
			})
		})
	}
}

// TestDeleteConflictingEntriesAndAllThatFollow: figure 2, AppendEntries RPC, 3 and 4:
// "If an existing entry conflicts with a new one (same index but different terms),
// delete the existing entry and all that follow it. Append any new entries not
// already in the log". An entry that does not conflict deletes nothing, so that a
// request that arrives late takes nothing back.
func TestDeleteConflictingEntriesAndAllThatFollow(t *testing.T) {
	for name, tt := range map[string]struct {
		prev, prevTerm uint64
		new            []uint64
		want           []uint64
	}{
		"conflict in the middle":         {2, 2, []uint64{3}, []uint64{1, 2, 3}},
		"conflict after some that match": {1, 1, []uint64{2, 2, 4, 4}, []uint64{1, 2, 2, 4, 4}},
		"the same, fewer":                {1, 1, []uint64{2}, []uint64{1, 2, 2, 3}},
		"the same":                       {1, 1, []uint64{2, 2, 3}, []uint64{1, 2, 2, 3}},
		"the same, and more":             {1, 1, []uint64{2, 2, 3, 4}, []uint64{1, 2, 2, 3, 4}},
		"none, in the middle":            {2, 2, nil, []uint64{1, 2, 2, 3}},
		"at the end":                     {4, 3, []uint64{4, 4}, []uint64{1, 2, 2, 3, 4, 4}},
		"conflict at the end":            {3, 2, []uint64{2, 4}, []uint64{1, 2, 2, 2, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, Options{Terms: []uint64{1, 2, 2, 3}, Term: 4}, func(p *Node) {
				if got := p.Append("B", 4, tt.prev, tt.prevTerm, 0, entries(tt.prev, tt.new...)...); !got.Success {
					t.Errorf("the answer is %+v", got)
				}
				p.wantLog(tt.want...)
			})
		})
	}
}

// TestCommitIsMinOfLeaderCommitAndLastNewEntry: figure 2, AppendEntries RPC, 5: "If
// leaderCommit > commitIndex, set commitIndex = min(leaderCommit, index of last new
// entry)". The library takes the last entry of its own log; see provenCommit.
func TestCommitIsMinOfLeaderCommitAndLastNewEntry(t *testing.T) {
	for name, tt := range map[string]struct {
		prev, prevTerm, commit uint64
		new                    []uint64
		want                   []string
	}{
		"an entry that the leader has not named": {2, 1, 3, nil, []string{"2@1"}},
		"below the last new entry":               {2, 1, 3, []uint64{2, 2}, []string{"2@1", "3@2"}},
		"above the last new entry":               {2, 1, 9, []uint64{2}, []string{"2@1", "3@2"}},
		"a heartbeat":                            {0, 0, 0, nil, nil},
		"a heartbeat with a commit index":        {0, 0, 3, nil, nil},
		"an entry that is there already":         {1, 1, 3, []uint64{1}, []string{"2@1"}},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, Options{Terms: []uint64{1, 1, 1}, Term: 2}, func(p *Node) {
				p.Append("B", 2, tt.prev, tt.prevTerm, tt.commit, entries(tt.prev, tt.new...)...)
				p.wantApplied(tt.want...)
			})
		})
	}
}

// TestCommitIndexArrivesWithTheNextRequest: a bounded commit index is no lost one.
func TestCommitIndexArrivesWithTheNextRequest(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1, 1}, Term: 2}, func(p *Node) {
		p.Append("B", 2, 2, 1, 9)
		p.Append("B", 2, 3, 1, 9)
		p.Append("B", 2, 3, 1, 9, entries(3, 2, 2)...)
		p.wantApplied("2@1", "3@1", "4@2", "5@2")
	})
}

// TestApplyInOrderAndOnce: figure 2, all servers: "If commitIndex > lastApplied:
// increment lastApplied, apply log[lastApplied] to state machine".
func TestApplyInOrderAndOnce(t *testing.T) {
	Run(t, Options{Terms: []uint64{1}, Term: 1}, func(p *Node) {
		p.Append("B", 1, 1, 1, 3, entries(1, 1, 1, 1)...)
		p.Append("B", 1, 1, 1, 2, entries(1, 1, 1, 1)...) // An old one comes late.
		p.Append("B", 1, 4, 1, 4)
		p.wantApplied("2@1", "3@1", "4@1")
	})
}

// TestUpdatedOnStableStorageBeforeResponding: figure 2, state: "Persistent state on
// all servers (Updated on stable storage before responding to RPCs)".
func TestUpdatedOnStableStorageBeforeResponding(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1, 1}, Term: 1}, func(p *Node) {
		p.Append("B", 2, 2, 1, 0, entries(2, 2, 2)...)
		p.wantWritten("CurrentTerm=2", "delete 3-3", "log 3-4", "answer")
		p.restart()
		p.wantTerm(2)
		p.wantLog(1, 1, 2, 2)
		p.Vote("C", 3, 9, 2)
		p.wantWritten("CurrentTerm=3", "LastVoteTerm=3", "LastVoteCand=c", "answer")
		p.install("B", 3, 9, 2, "A", "B", "C")
		p.restart()
		p.wantTerm(3)
		p.wantApplied("snapshot 9")
	})
}

// TestATermFromARequestIsAdopted: figure 2, all servers: "If RPC request or response
// contains term T > currentTerm: set currentTerm = T, convert to follower".
func TestATermFromARequestIsAdopted(t *testing.T) {
	states := map[string]func(p *Node){
		"follower":  func(*Node) {},
		"candidate": func(p *Node) { p.timeoutNow("B") },
		"leader":    func(p *Node) { p.lead("B") },
	}
	for state, reach := range states {
		for request, send := range map[string]func(p *Node){
			"append":   func(p *Node) { p.Append("C", 7, 0, 0, 0) },
			"snapshot": func(p *Node) { _, _ = p.install("C", 7, 9, 6, "A", "B", "C") },
		} {
			t.Run(state+"/"+request, func(t *testing.T) {
				Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
					reach(p)
					send(p)
					p.wantTerm(7)
					p.wantState(raft.Follower)
				})
			})
		}
	}
}

// TestATermFromAVoteIsAdopted: the same of votes, unless there is a leader: thesis
// 4.2.3: "if a server receives a RequestVote request within the minimum election
// timeout of hearing from a current leader, it does not update its term or grant its
// vote".
func TestATermFromAVoteIsAdopted(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		if resp := p.Vote("B", 5, 0, 0); resp.Granted || resp.Term != 5 {
			t.Errorf("the answer is %+v", resp)
		}
		p.wantTerm(5)
		p.Append("B", 5, 0, 0, 0)
		if resp := p.Vote("C", 6, 9, 5); resp.Granted || resp.Term != 5 {
			t.Errorf("with a leader, the answer is %+v", resp)
		}
		if resp := p.preVote("C", 6, 9, 5); resp.Granted {
			t.Errorf("with a leader, the answer is %+v", resp)
		}
		p.wantTerm(5)
	})
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.lead("B")
		if resp := p.Vote("C", 7, 9, 5); resp.Granted || resp.Term != 2 {
			t.Errorf("a leader's answer is %+v", resp)
		}
		p.wantState(raft.Leader)
	})
}

// TestATermFromAnAnswerIsAdopted: the same of answers. A leader steps down, and the
// library leaves its term as it is: it votes in that term no more, and the next
// request has the newer one.
func TestATermFromAnAnswerIsAdopted(t *testing.T) {
	newer := func(request any) any {
		switch request.(type) {
		case *raft.AppendEntriesRequest:
			return &raft.AppendEntriesResponse{Term: 7}
		case *raft.RequestVoteRequest:
			return &raft.RequestVoteResponse{Term: 7}
		}
		return nil
	}
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.Others["B"].answer(newer)
		p.timeoutNow("B")
		p.wantState(raft.Follower)
		p.wantTerm(7)
	})
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.lead("B")
		p.Others["B"].answer(newer)
		time.Sleep(100 * time.Millisecond) // The commit timeout sends the next.
		p.wantState(raft.Follower)
		p.wantTerm(2)
		if resp := p.Vote("C", 2, 9, 2); resp.Granted {
			t.Error("a second vote in one term")
		}
	})
}

// TestEntriesThatOverlapASnapshot: figure 13, and figure 2 for what lies behind a snapshot.
func TestEntriesThatOverlapASnapshot(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 2}, func(p *Node) {
		if resp, err := p.install("B", 2, 9, 2, "A", "B", "C"); !resp.Success {
			t.Fatal(resp, err)
		}
		p.wantApplied("snapshot 9")
		for _, prev := range []struct {
			index, term uint64
			want        bool
		}{{9, 1, false}, {9, 3, false}, {5, 3, false}, {5, 1, true}, {10, 2, false}, {9, 2, true}} {
			if got := p.Append("B", 2, prev.index, prev.term, prev.index); got.Success != prev.want {
				t.Errorf("after entry %d@%d the answer is %+v", prev.index, prev.term, got)
			}
		}
		for range 2 { // The answer to the first may be lost.
			if got := p.Append("B", 2, 9, 2, 11, entries(9, 2, 2)...); !got.Success {
				t.Errorf("the answer is %+v", got)
			}
		}
		p.wantApplied("snapshot 9", "10@2", "11@2")
	})
}

// TestALeaderWithAnOlderSnapshotGoesOn: what the own snapshot covers is committed, so neither an older snapshot nor
// entries up to its end are missed. Those of another history are refused.
func TestALeaderWithAnOlderSnapshotGoesOn(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 2}, func(p *Node) {
		if resp, err := p.install("B", 2, 9, 2, "A", "B", "C"); !resp.Success {
			t.Fatal(resp, err)
		}
		if resp, err := p.install("C", 3, 5, 1, "A", "B", "C"); !resp.Success {
			t.Errorf("the answer to an older snapshot is %+v, %v", resp, err)
		}
		for name, terms := range map[string][]uint64{
			"another last entry of the snapshot": {1, 1, 1, 1, 3}, "a newer term within it": {1, 3, 3, 3, 3},
		} {
			if got := p.Append("C", 3, 5, 1, 9, entries(5, terms...)...); got.Success {
				t.Errorf("%s: the answer is %+v", name, got)
			}
		}
		p.wantApplied("snapshot 9")
		for range 2 { // The answer to the first may be lost.
			if got := p.Append("C", 3, 5, 1, 7, entries(5, 1, 2)...); !got.Success {
				t.Errorf("the answer is %+v", got)
			}
			if got := p.Append("C", 3, 7, 2, 11, entries(7, 2, 2, 3, 3)...); !got.Success {
				t.Errorf("the answer is %+v", got)
			}
		}
		p.wantApplied("snapshot 9", "10@3", "11@3")
	})
}

// TestRetainEntriesThatFollowTheSnapshot: figure 13, 6: "If existing log entry has same
// index and term as snapshot's last included entry, retain log entries following it
// and reply". The library would install it; see transport/install.go.
func TestRetainEntriesThatFollowTheSnapshot(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 2}, func(p *Node) {
		p.Append("B", 2, 2, 1, 5, Entry(3, 2), configurationEntry(4, 2, "A", "B", "C", "D"), Entry(5, 2), Entry(6, 2))
		p.wantApplied("2@1", "3@2", "5@2")
		p.Disk.forget()
		resp, err := p.install("B", 2, 3, 2, "A", "B", "C") // Comes late.
		if !resp.Success || err != nil {
			t.Errorf("the answer is %+v, %v", resp, err)
		}
		p.wantWritten("answer")
		p.wantLog(1, 1, 2, 2, 2, 2)
		p.wantApplied("2@1", "3@2", "5@2")
		if got := len(p.Raft.GetConfiguration().Configuration().Servers); got != 4 {
			t.Errorf("the configuration has %d servers, want that of entry 4", got)
		}
	})
}

// TestDiscardTheLogAndResetTheStateMachine: figure 13, 7 and 8: "Discard the entire
// log. Reset state machine using snapshot contents (and load snapshot's cluster
// configuration)".
func TestDiscardTheLogAndResetTheStateMachine(t *testing.T) {
	for name, terms := range map[string][]uint64{
		"empty":                   nil,
		"shorter":                 {1, 1, 1},
		"ends with another entry": {1, 1, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, Options{Terms: terms, Term: 2}, func(p *Node) {
				if resp, err := p.install("B", 2, 5, 2, "A", "B"); !resp.Success {
					t.Fatal(resp, err)
				}
				p.wantLog()
				p.wantApplied("snapshot 5")
				if got := len(p.Raft.GetConfiguration().Configuration().Servers); got != 2 {
					t.Errorf("the configuration has %d servers", got)
				}
				if resp := p.Append("B", 2, 5, 2, 6, Entry(6, 2)); !resp.Success {
					t.Errorf("the answer is %+v", resp)
				}
				p.wantApplied("snapshot 5", "6@2")
				p.restart()
				p.wantApplied("snapshot 5")
			})
		})
	}
}

// TestASnapshotThatIsOlderIsNotInstalled: figure 13, 5: "discard any existing or
// partial snapshot with a smaller index". What A has applied stays applied.
func TestASnapshotThatIsOlderIsNotInstalled(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 2}, func(p *Node) {
		_, err := p.install("B", 2, 9, 2, "A", "B", "C")
		p.Must(err)
		_, _ = p.install("B", 2, 7, 2, "A", "B", "C")
		p.wantApplied("snapshot 9")
		p.Append("B", 2, 9, 2, 10, Entry(10, 2))
		p.wantApplied("snapshot 9", "10@2")
	})
}

// TestLatestConfigurationInTheLogIsUsed: section 6: "a server always uses the latest
// configuration in its log, regardless of whether the entry is committed"; thesis 4.1:
// if that entry is removed, it "must be prepared to fall back to the previous
// configuration in its log".
func TestLatestConfigurationInTheLogIsUsed(t *testing.T) {
	servers := func(p *Node) int {
		synctest.Wait()
		return len(p.Raft.GetConfiguration().Configuration().Servers)
	}
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.Append("B", 1, 2, 1, 2, configurationEntry(3, 1, "A", "B", "C", "D"))
		if got := servers(p); got != 4 {
			t.Errorf("%d servers after the entry", got)
		}
		p.restart()
		if got := servers(p); got != 4 {
			t.Errorf("%d servers after a restart", got)
		}
		p.Append("C", 2, 2, 1, 2, Entry(3, 2))
		if got := servers(p); got != 3 {
			t.Errorf("%d servers after the entry was removed", got)
		}
	})
}
