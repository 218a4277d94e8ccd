package papertest

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// TestVoteOnlyForALogAtLeastAsUpToDate: figure 2, RequestVote RPC, 2, and section
// 5.4.1: "If the logs have last entries with different terms, then the log with the
// later term is more up-to-date. If the logs end with the same term, then whichever
// log is longer is more up-to-date". A pre-vote has the same rule (thesis 9.6).
func TestVoteOnlyForALogAtLeastAsUpToDate(t *testing.T) {
	for _, last := range []struct {
		index, term uint64
		want        bool
	}{{0, 0, false}, {2, 1, false}, {9, 1, false}, {2, 2, false}, {3, 2, true}, {4, 2, true}, {1, 3, true}, {3, 3, true}} {
		t.Run(fmt.Sprintf("%d@%d", last.index, last.term), func(t *testing.T) {
			Run(t, Options{Terms: []uint64{1, 2, 2}, Term: 3}, func(p *Node) {
				if got := p.preVote("B", 4, last.index, last.term); got.Granted != last.want {
					t.Errorf("the answer to a pre-vote is %+v", got)
				}
				if got := p.Vote("B", 4, last.index, last.term); got.Granted != last.want || got.Term != 4 {
					t.Errorf("the answer to a vote is %+v", got)
				}
			})
		})
	}
}

// TestVoteOnlyForALogThatReachesTheSnapshot: the same where a snapshot is the end.
func TestVoteOnlyForALogThatReachesTheSnapshot(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 2}, func(p *Node) {
		_, err := p.install("B", 2, 9, 2, "A", "B", "C")
		p.Must(err)
		p.restart() // It has forgotten its leader.
		if got := p.Vote("C", 3, 8, 2); got.Granted {
			t.Error("a vote for a log that ends before the snapshot")
		}
		if got := p.Vote("C", 4, 9, 2); !got.Granted {
			t.Error("no vote for a log that ends where the snapshot does")
		}
	})
}

// TestVoteForAtMostOneCandidateInATerm: section 5.2: "Each server will vote for at
// most one candidate in a given term, on a first-come-first-served basis", also after a
// restart.
func TestVoteForAtMostOneCandidateInATerm(t *testing.T) {
	for _, again := range []bool{false, true} {
		Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
			if got := p.Vote("B", 2, 2, 1); !got.Granted {
				t.Fatalf("the answer to the first is %+v", got)
			}
			if again {
				p.restart()
			}
			if got := p.Vote("C", 2, 9, 1); got.Granted {
				t.Error("two votes in one term")
			}
			if got := p.Vote("B", 2, 2, 1); !got.Granted {
				t.Error("the first candidate's vote is gone when it asks again")
			}
			if got := p.Vote("C", 3, 9, 1); !got.Granted {
				t.Error("no vote in the next term")
			}
		})
	}
}

// TestAVoteIsRepeatedByName: figure 2, RequestVote RPC, 2: "If votedFor is null or
// candidateId, and candidate's log is at least as up-to-date as receiver's log, grant
// vote". The library repeats a vote by the candidate's name and does not compare the
// logs again. The candidate's log was compared when the vote was given, and a
// candidate counts one answer of each voter, so this gives nobody a vote that it did
// not have.
func TestAVoteIsRepeatedByName(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.Vote("B", 2, 2, 1)
		if got := p.Vote("B", 2, 0, 0); !got.Granted {
			t.Error("the library compares logs now: this deviation can go from the table")
		}
	})
}

// TestOnlyMembersOfTheConfigurationGetVotes: the library refuses a candidate that is
// no voter in its configuration. Thesis 4.2.2 lets servers vote for it; it only costs
// availability, see "What is not promised" in docs/promises.md.
func TestOnlyMembersOfTheConfigurationGetVotes(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		if got := p.Vote("D", 2, 9, 1); got.Granted {
			t.Error("a vote for a server that is in no configuration")
		}
		if got := p.preVote("D", 2, 9, 1); got.Granted {
			t.Error("a pre-vote for a server that is in no configuration")
		}
	})
}

// TestPreVoteChangesNothing: thesis 9.6: "In the Pre-Vote algorithm, a candidate only
// increments its term if it first learns from a majority of the cluster that they would
// be willing to grant the candidate their votes"; and the answer promises nothing.
func TestPreVoteChangesNothing(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		for _, tag := range []string{"B", "C", "B"} {
			if got := p.preVote(tag, 9, 2, 1); !got.Granted {
				t.Error("no pre-vote for", tag)
			}
		}
		p.wantTerm(1)
		p.wantWritten()
	})
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1, campaigns: true}, func(p *Node) {
		time.Sleep(10 * time.Second)
		if got := Received[*raft.RequestPreVoteRequest](p, "B"); len(got) == 0 || got[0].Term != 2 || got[0].LastLogIndex != 2 ||
			got[0].LastLogTerm != 1 {
			t.Errorf("the requests are %+v", got)
		}
		p.wantTerm(1)
		if got := Received[*raft.RequestVoteRequest](p, "C"); len(got) > 0 {
			t.Error("a request for votes without a majority of pre-votes")
		}
	})
}

// TestNoPreVoteWithALeader: thesis 9.6: servers grant it if they "have not received a
// heartbeat from a valid leader for at least a baseline election timeout".
func TestNoPreVoteWithALeader(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.Append("B", 1, 2, 1, 0)
		if got := p.preVote("C", 2, 9, 1); got.Granted {
			t.Error("a pre-vote although there is a leader")
		}
	})
}

// TestNoPreVoteWhereTheVoteIsGiven: thesis 9.6: servers grant a pre-vote if they "would be
// willing to grant the candidate their votes", and a term has one vote (section 5.2). The
// library grants it. It is refused as soon as A writes the term, and not for ever: A may have
// the term without having voted. For the next term it is refused until B is heard to lead.
func TestNoPreVoteWhereTheVoteIsGiven(t *testing.T) {
	const latency = 800 * time.Millisecond
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.Disk.Slow(latency)
		voted := make(chan raft.RequestVoteResponse, 1)
		go func() { voted <- p.Vote("B", 2, 2, 1) }()
		synctest.Wait()
		begin := time.Now()
		if got := p.preVote("C", 2, 9, 1); got.Granted || time.Since(begin) > 0 {
			t.Errorf("while the term is written: %+v after %v", got, time.Since(begin))
		}
		if got := <-voted; !got.Granted {
			t.Errorf("the answer to the vote is %+v", got)
		}
		if got := p.preVote("C", 2, 9, 1); got.Granted {
			t.Error("a pre-vote for a term in which B has the vote")
		}
		if got := p.preVote("C", 3, 9, 1); got.Granted {
			t.Error("a pre-vote for the next term before B could lead")
		}
		if got := p.preVote("C", 4, 9, 1); !got.Granted {
			t.Error("no pre-vote for a later term")
		}
		time.Sleep(4 * latency)
		if got := p.preVote("C", 2, 9, 1); !got.Granted {
			t.Error("no pre-vote for the term ever again")
		}
	})
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.Vote("B", 2, 2, 1)
		p.Append("B", 2, 2, 1, 0)
		if got := p.preVote("B", 3, 2, 1); !got.Granted {
			t.Error("no pre-vote for the next term although B has led")
		}
	})
}

// TestElectionTimeoutBeginsAnElection: figure 2, followers: "If election timeout
// elapses without receiving AppendEntries RPC from current leader or granting vote to
// candidate: convert to candidate"; candidates: "increment currentTerm, vote for self,
// send RequestVote RPCs to all other servers".
func TestElectionTimeoutBeginsAnElection(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1, campaigns: true}, func(p *Node) {
		for range 20 { // Each in time.
			time.Sleep(500 * time.Millisecond)
			p.Append("B", 1, 2, 1, 0)
		}
		p.wantState(raft.Follower)
		p.Disk.forget()
		p.Others["B"].answer(func(request any) any {
			if r, ok := request.(*raft.RequestVoteRequest); ok {
				p.Disk.record("asked for a vote of term %d with %d@%d", r.Term, r.LastLogIndex, r.LastLogTerm)
				return nil
			}
			return grantAll(request)
		})
		time.Sleep(5 * time.Second)
		p.wantState(raft.Candidate)
		w := p.Disk.forget()
		if len(w) < 4 || fmt.Sprint(w[:4]) != "[CurrentTerm=2 LastVoteTerm=2 LastVoteCand=a asked for a vote of term 2 with 2@1]" {
			t.Errorf("written, and sent, is %v", w)
		}
	})
}

// TestAVoteGivesTheCandidateTime: the same sentence, "or granting vote to candidate".
func TestAVoteGivesTheCandidateTime(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1, campaigns: true}, func(p *Node) {
		for term := uint64(2); term < 12; term++ {
			time.Sleep(900 * time.Millisecond)
			if !p.Vote("B", term, 2, 1).Granted {
				t.Fatal("no vote")
			}
		}
		p.wantState(raft.Follower)
	})
}

// TestVotesOfAMajorityMakeALeader: figure 2, candidates: "If votes received from
// majority of servers: become leader".
func TestVotesOfAMajorityMakeALeader(t *testing.T) {
	for votes, want := range []raft.RaftState{raft.Candidate, raft.Candidate, raft.Leader, raft.Leader} {
		Run(t, Options{Terms: []uint64{1, 1}, Term: 1, Voters: []string{"A", "B", "C", "D", "E"}}, func(p *Node) {
			for _, tag := range []string{"B", "C", "D", "E"}[:votes] {
				p.Others[tag].answer(grantAll)
			}
			p.timeoutNow("B")
			p.wantState(want)
		})
	}
}

// TestACandidateFollowsANewLeader: figure 2, candidates: "If AppendEntries RPC received
// from new leader: convert to follower", also in its own term. After a transfer of
// leadership the library stays a candidate until its election timeout, without harm: it
// takes the leader's entries, and a majority has voted for that leader.
func TestACandidateFollowsANewLeader(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1, campaigns: true}, func(p *Node) {
		p.Others["B"].answer(func(request any) any {
			if _, ok := request.(*raft.RequestVoteRequest); ok {
				return nil
			}
			return grantAll(request)
		})
		time.Sleep(2500 * time.Millisecond)
		p.wantState(raft.Candidate)
		term := p.Raft.CurrentTerm()
		p.Append("C", term, 2, 1, 0, Entry(3, term))
		p.wantState(raft.Follower)
		p.wantTerm(term)
	})
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.timeoutNow("B")
		p.wantState(raft.Candidate)
		if got := p.Append("C", 2, 2, 1, 3, Entry(3, 2)); !got.Success {
			t.Errorf("the answer is %+v", got)
		}
		p.wantApplied("2@1", "3@2")
	})
}

// TestElectionTimeoutBeginsANewElection: figure 2, candidates: "If election timeout
// elapses: start new election". A term in which there are votes is not used again.
func TestElectionTimeoutBeginsANewElection(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1, campaigns: true}, func(p *Node) {
		p.Others["B"].answer(func(request any) any {
			if r, ok := request.(*raft.RequestVoteRequest); ok {
				return &raft.RequestVoteResponse{Term: r.Term}
			}
			return grantAll(request)
		})
		time.Sleep(20 * time.Second)
		requests := Received[*raft.RequestVoteRequest](p, "B")
		if len(requests) < 3 {
			t.Fatalf("%d elections", len(requests))
		}
		for i, r := range requests {
			if r.Term != uint64(2+i) {
				t.Errorf("election %d has term %d", i, r.Term)
			}
		}
	})
}

// TestTimeoutNowBeginsAnElectionAtOnce: thesis 3.10: "This request has the same effect
// as the target server's election timer firing: the target server starts a new
// election (incrementing its term and becoming a candidate)"; and 4.2.3: its requests
// "include a special flag" with which servers vote although they hear a leader.
func TestTimeoutNowBeginsAnElectionAtOnce(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.Append("B", 1, 2, 1, 0)
		p.timeoutNow("B")
		got := Received[*raft.RequestVoteRequest](p, "C")
		if len(got) != 1 || got[0].Term != 2 || !got[0].LeadershipTransfer {
			t.Errorf("the requests are %+v", got)
		}
		p.wantTerm(2)
	})
}

// TestATransferGoesToAnUpToDateServer: thesis 3.10: "The prior leader stops
// accepting new client requests", "fully updates the target server's log to match its
// own" and then "sends a TimeoutNow request".
func TestATransferGoesToAnUpToDateServer(t *testing.T) {
	Run(t, Options{Terms: []uint64{1, 1}, Term: 1}, func(p *Node) {
		p.lead("B", "C")
		p.Others["B"].answer(voteOnly)
		p.Raft.Apply([]byte("x"), 0)
		id := ID("B")
		p.Self.BeginTransfer()
		transferred := p.Raft.LeadershipTransferToServer(id, raft.ServerAddress(id))
		synctest.Wait()
		if got := Received[*raft.TimeoutNowRequest](p, "B"); len(got) > 0 {
			t.Error("a server that is behind was told to campaign")
		}
		if err := p.Raft.Apply([]byte("y"), 0).Error(); !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			t.Errorf("a request during the transfer: %v", err)
		}
		p.Others["B"].answer(grantAll)
		time.Sleep(3 * time.Second) // The request without an answer times out.
		if got := Received[*raft.TimeoutNowRequest](p, "B"); len(got) != 1 {
			t.Errorf("%d TimeoutNow requests", len(got))
		}
		p.Append("B", 3, 0, 0, 0)
		p.Must(transferred.Error())
		p.wantState(raft.Follower)
	})
}
