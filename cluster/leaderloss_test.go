package cluster

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/nodeid"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// What a voter may say of the leader of term 5.
var (
	goneIn5            = &peerv1.LeaderContact{Term: 5, Gone: true, CanCampaign: true, LastIndex: 10}
	goneAt11           = &peerv1.LeaderContact{Term: 5, Gone: true, CanCampaign: true, LastIndex: 11}
	goneCannotCampaign = &peerv1.LeaderContact{Term: 5, Gone: true, LastIndex: 11}
	hearsIn5           = &peerv1.LeaderContact{Term: 5, Connected: true, SilentMicros: 20_000, CanCampaign: true, LastIndex: 10}
	silentIn5          = &peerv1.LeaderContact{Term: 5, Connected: true, SilentMicros: 900_000, CanCampaign: true, LastIndex: 10}
	goneSilent         = &peerv1.LeaderContact{Term: 5, Connected: true, SilentMicros: 250_000, Gone: true, CanCampaign: true, LastIndex: 10}
	lostIn5            = &peerv1.LeaderContact{Term: 5, CanCampaign: true, LastIndex: 10}
	goneIn4            = &peerv1.LeaderContact{Term: 4, Gone: true, CanCampaign: true, LastIndex: 10}
	hearsIn6           = &peerv1.LeaderContact{Term: 6, Connected: true, CanCampaign: true, LastIndex: 10}
	campaignedIn5      = &peerv1.LeaderContact{Term: 5, Gone: true, CanCampaign: true, LastIndex: 10, Campaigned: true}
	campaignedIn4      = &peerv1.LeaderContact{Term: 4, Gone: true, CanCampaign: true, LastIndex: 10, Campaigned: true}
	lostIn6            = &peerv1.LeaderContact{Term: 6, Gone: true, CanCampaign: true, LastIndex: 10}
	saysNothing        *peerv1.LeaderContact
	leaderItself       = saysNothing
)

// TestLossEvidence: when B takes the leader A for gone, and how many campaign before it.
func TestLossEvidence(t *testing.T) {
	for _, tt := range []struct {
		name   string
		told   []*peerv1.LeaderContact // of A, B, …; B is this node, and A the leader
		gone   bool
		before int
	}{
		{"both others lost it", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5}, true, 0},
		{"the other's log reaches further", []*peerv1.LeaderContact{leaderItself, goneIn5, goneAt11}, true, 1},
		{"but it cannot campaign", []*peerv1.LeaderContact{leaderItself, goneIn5, goneCannotCampaign}, true, 0},
		{"this node's log reaches further", []*peerv1.LeaderContact{leaderItself, goneAt11, goneIn5}, true, 0},
		{"the other hears it", []*peerv1.LeaderContact{leaderItself, goneIn5, hearsIn5}, false, 0},
		{"the other is connected, and the leader paused", []*peerv1.LeaderContact{leaderItself, goneIn5, silentIn5}, false, 0},
		{"the other is connected, and could not dial the silent leader", []*peerv1.LeaderContact{leaderItself, goneIn5, goneSilent}, true, 0},
		{"the other has not dialled it anew yet", []*peerv1.LeaderContact{leaderItself, goneIn5, lostIn5}, false, 0},
		{"the other does not answer", []*peerv1.LeaderContact{leaderItself, goneIn5, saysNothing}, false, 0},
		{"the other lost an earlier leader", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn4}, false, 0},
		{"the other has a newer leader", []*peerv1.LeaderContact{leaderItself, goneIn5, hearsIn6}, false, 0},
		{"the other lost a newer leader", []*peerv1.LeaderContact{leaderItself, goneIn5, lostIn6}, false, 0},
		{"the other campaigns already", []*peerv1.LeaderContact{leaderItself, goneAt11, campaignedIn5}, false, 0},
		{"the other campaigned after an earlier leader", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5, goneIn5, campaignedIn4}, true, 0},
		{"one of five campaigns already", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5, goneIn5, campaignedIn5}, false, 0},
		{"the leader follows a newer one", []*peerv1.LeaderContact{hearsIn6, goneIn5, goneIn5}, false, 0},
		{"two voters", []*peerv1.LeaderContact{leaderItself, goneIn5}, false, 0},
		{"a majority of five", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5, goneIn5, saysNothing}, true, 0},
		{"two of five", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5, saysNothing, saysNothing}, false, 0},
		{"one of five hears it", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5, goneIn5, hearsIn5}, false, 0},
		{"two of five reach further", []*peerv1.LeaderContact{leaderItself, goneIn5, goneAt11, goneIn5, goneAt11}, true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := lossEvidence{term: 5, lease: 200 * time.Millisecond, self: "B", replies: map[string]*peerv1.LeaderContact{}}
			for i, c := range tt.told {
				tag := string(rune('A' + i))
				e.voters = append(e.voters, &raftlogv1.Member{Id: []byte(tag), Tag: tag})
				e.replies[tag] = c
			}
			before, gone := e.tally()
			if gone != tt.gone || before != tt.before {
				t.Errorf("gone: %v, %d before; want %v, %d", gone, before, tt.gone, tt.before)
			}
		})
	}
}

// TestVotersCampaignInOneOrder: each voter counts others before it, so no two campaign at once:
// the one with the longest log first, and of equal ones by tag.
func TestVotersCampaignInOneOrder(t *testing.T) {
	e := lossEvidence{term: 5, replies: map[string]*peerv1.LeaderContact{"B": goneIn5, "C": goneAt11, "D": goneIn5, "E": goneAt11}}
	for _, tag := range []string{"A", "B", "C", "D", "E"} {
		e.voters = append(e.voters, &raftlogv1.Member{Id: []byte(tag), Tag: tag})
	}
	for want, tag := range []string{"C", "E", "B", "D"} {
		e.self = tag
		if before, gone := e.tally(); !gone || before != want {
			t.Errorf("%d campaign before %s (the leader is gone: %v), want %d", before, tag, gone, want)
		}
	}
}

// paperLoss is the leaderLoss of A. B leads term 2; C says what told has.
type paperLoss struct {
	*paper
	loss *leaderLoss
	told *peerv1.LeaderContact
	// meanwhile is called while the loss is followed; nil waits for a second.
	meanwhile func()
}

func newPaperLoss(p *paper) *paperLoss {
	id := func(tag string) []byte {
		raw, err := nodeid.Parse(string(paperID(tag)))
		p.must(err)
		return raw[:]
	}
	var voters []*raftlogv1.Member
	for _, tag := range p.options.voters {
		voters = append(voters, &raftlogv1.Member{Id: id(tag), Tag: tag})
	}
	l := &paperLoss{paper: p, told: goneIn2}
	l.loss = &leaderLoss{
		raft: p.raft, transport: p.self, self: id("A"), voters: func() []*raftlogv1.Member { return voters },
		full: func() bool { return false }, slow: func() bool { return false }, priority: DefaultLeaderPriority,
		ask: func(_ context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error) {
			if m.GetTag() != "C" || l.told == nil {
				return nil, errors.New("no answer")
			}
			return &peerv1.PingResponse{LeaderContact: l.told}, nil
		},
		roundTrip: func([]byte) time.Duration { return 0 },
		heartbeat: 250 * time.Millisecond, lease: 200 * time.Millisecond, log: slog.New(slog.DiscardHandler),
	}
	p.append("B", 2, 2, 1, 2)
	return l
}

var goneIn2 = &peerv1.LeaderContact{Term: 2, Gone: true, CanCampaign: true}

// ends ends the leader's process, as a kill does.
func (l *paperLoss) ends() {
	l.others["B"].close()
	delete(l.others, "B")
}

// breaks ends the leader's connections; it lives.
func (l *paperLoss) breaks() { l.others["B"].CloseStreams() }

// pauses has the leader's machine stand still: its connections stay.
func (l *paperLoss) pauses() { l.network.listen("B") }

// isFar has a new connection to the leader take 80 ms.
func (l *paperLoss) isFar() {
	const roundTrip = 80 * time.Millisecond
	l.loss.roundTrip = func([]byte) time.Duration { return roundTrip }
	leader := l.network["B"]
	l.network.listen("B")
	far := l.network["B"]
	go func() {
		for {
			select {
			case c := <-far.conns:
				time.AfterFunc(roundTrip, func() {
					select {
					case leader.conns <- c:
					case <-leader.done:
					}
				})
			case <-leader.done:
				return
			}
		}
	}()
}

// beatsLate has the leader send a heartbeat each 190 ms.
func (l *paperLoss) beatsLate() {
	for range 5 {
		time.Sleep(190 * time.Millisecond)
		l.append("B", 2, 2, 1, 2)
	}
}

// flaps breaks the leader's connections ten times. Each time it is back after 20 ms.
func (l *paperLoss) flaps() {
	for range 10 {
		l.breaks()
		time.Sleep(20 * time.Millisecond)
		l.append("B", 2, 2, 1, 2)
	}
	time.Sleep(time.Second)
}

// elections runs until the heartbeat timeout would take over, and returns the requests
// for votes.
func (l *paperLoss) elections() []*raft.RequestVoteRequest {
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.loss.run(ctx)
	}()
	if l.meanwhile != nil {
		l.meanwhile()
	} else {
		time.Sleep(time.Second)
	}
	cancel()
	<-done
	return received[*raft.RequestVoteRequest](l.paper, "C")
}

// TestALostLeaderIsReplacedAtOnce: with all the evidence A campaigns once, in
// the next term; if anything is missing, it leaves the matter to the heartbeat timeout.
func TestALostLeaderIsReplacedAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name      string
		happen    func(l *paperLoss)
		campaigns bool
	}{
		{"the leader ended, and the other lost it too", (*paperLoss).ends, true},
		{"the leader ended, and the other is before it", func(l *paperLoss) {
			l.told = &peerv1.LeaderContact{Term: 2, Gone: true, CanCampaign: true, LastIndex: 9}
			l.ends()
		}, true}, // The other one had its turn.
		{"the leader ended, and the other campaigns, whose disk is slow", func(l *paperLoss) {
			l.told = &peerv1.LeaderContact{Term: 2, Gone: true, CanCampaign: true, LastIndex: 9, Campaigned: true}
			l.ends()
		}, false},
		{"the leader's connections broke", (*paperLoss).breaks, false},
		{"the leader's connections broke, and it is far away", func(l *paperLoss) {
			l.isFar()
			l.breaks()
		}, false},
		{"the leader is silent, and is far away", func(l *paperLoss) {
			l.isFar()
			l.pauses()
		}, true},
		{"the leader ended for this node, and the other hears it", func(l *paperLoss) {
			l.told = &peerv1.LeaderContact{Term: 2, Connected: true, CanCampaign: true}
			l.ends()
		}, false},
		{"the leader ended, and the other does not answer", func(l *paperLoss) {
			l.told = nil
			l.ends()
		}, false},
		{"the leader's connections break again and again", func(l *paperLoss) { l.meanwhile = l.flaps }, false},
		{"the leader is silent, and answers a new connection", func(*paperLoss) {}, false},
		{"the leader is silent, and does not answer", (*paperLoss).pauses, true},
		{"the leader is silent for this node, and the other hears it", func(l *paperLoss) {
			l.told = &peerv1.LeaderContact{Term: 2, Connected: true, SilentMicros: 20_000, CanCampaign: true}
			l.pauses()
		}, false},
		{"the leader was silent for less than its lease", func(l *paperLoss) {
			l.pauses()
			l.meanwhile = l.beatsLate
		}, false},
		{"a follower ended", func(l *paperLoss) {
			l.append("C", 2, 2, 1, 2)
			l.append("B", 2, 2, 1, 2)
			l.others["C"].CloseStreams()
		}, false},
		{"this node closed the connections", func(l *paperLoss) { l.self.Disconnect(paperID("B")) }, false},
		{"there is another leader by now", func(l *paperLoss) {
			l.ends()
			l.append("C", 3, 2, 1, 2)
		}, false},
		{"there is another candidate by now", func(l *paperLoss) {
			l.ends()
			l.vote("C", 3, 9, 9)
		}, false},
		{"this node's disk is nearly full", func(l *paperLoss) {
			l.loss.full = func() bool { return true }
			l.ends()
		}, false},
		{"this node's disk is slow", func(l *paperLoss) {
			l.loss.slow = func() bool { return true }
			l.ends()
		}, false},
		{"this node has priority 0", func(l *paperLoss) {
			l.loss.priority = 0
			l.ends()
		}, false},
		{"this node has no vote", func(l *paperLoss) {
			l.loss.self = []byte("another")
			l.ends()
		}, false},
		{"this node has stepped down", func(l *paperLoss) {
			l.self.StepDown(1, time.Minute, time.Minute)
			l.ends()
		}, false},
		{"it has campaigned after this term", func(l *paperLoss) {
			l.loss.campaigned.Store(2)
			l.ends()
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			paperTest(t, paperOptions{terms: []uint64{1, 1}, term: 1}, func(p *paper) {
				l := newPaperLoss(p)
				tt.happen(l)
				got := l.elections()
				if (len(got) == 1) != tt.campaigns || len(got) > 1 {
					t.Fatalf("the requests for votes are %+v; it campaigns: want %v", got, tt.campaigns)
				}
				if tt.campaigns && (got[0].Term != 3 || !got[0].LeadershipTransfer) {
					t.Errorf("the request for a vote is %+v", got[0])
				}
				synctest.Wait()
			})
		})
	}
}

// TestACandidateTellsOthersAtOnce: before its disk has the new term, so that nobody else
// campaigns in the same term.
func TestACandidateTellsOthersAtOnce(t *testing.T) {
	paperTest(t, paperOptions{terms: []uint64{1, 1}, term: 1}, func(p *paper) {
		l := newPaperLoss(p)
		if l.loss.contact().GetCampaigned() {
			t.Error("it says that it campaigns, while it follows")
		}
		p.disk.slow(200 * time.Millisecond)
		l.ends()
		l.meanwhile = func() {
			time.Sleep(100 * time.Millisecond)
			if c := l.loss.contact(); c.GetTerm() != 2 || !c.GetCampaigned() {
				t.Errorf("while it writes the new term: %v", c)
			}
			if asked := received[*raft.RequestVoteRequest](p, "C"); len(asked) > 0 {
				t.Errorf("it asks for votes already: %v", asked)
			}
			time.Sleep(time.Second)
		}
		if got := l.elections(); len(got) != 1 {
			t.Errorf("it asked for votes: %v", got)
		}
		p.disk.slow(0)
		p.append("C", 4, 2, 1, 2)
		if c := l.loss.contact(); c.GetTerm() != 4 || c.GetCampaigned() {
			t.Errorf("it still says so with another leader: %v", c)
		}
	})
}

// TestContactIsTold: what a voter answers of its contact with the leader.
func TestContactIsTold(t *testing.T) {
	paperTest(t, paperOptions{terms: []uint64{1, 1}, term: 1}, func(p *paper) {
		l := newPaperLoss(p)
		time.Sleep(20 * time.Millisecond)
		if c := l.loss.contact(); c.GetTerm() != 2 || !c.GetConnected() || c.GetGone() || !c.GetCanCampaign() || c.GetLastIndex() != 2 || c.GetSilentMicros() != 20_000 {
			t.Errorf("while it follows: %v", c)
		}
		l.told = nil
		l.ends()
		if got := l.elections(); len(got) > 0 {
			t.Errorf("it campaigned: %v", got)
		}
		if c := l.loss.contact(); c.GetTerm() != 2 || c.GetConnected() || !c.GetGone() {
			t.Errorf("when the leader is gone: %v", c)
		}
		p.append("C", 3, 2, 1, 2)
		if c := l.loss.contact(); c.GetTerm() != 3 || !c.GetConnected() || c.GetGone() {
			t.Errorf("with another leader: %v", c)
		}
	})
}

// TestALeaderThatIsHeardAgainIsNotGone: also when it falls silent once more, until it has
// been dialled without an answer once more.
func TestALeaderThatIsHeardAgainIsNotGone(t *testing.T) {
	paperTest(t, paperOptions{terms: []uint64{1, 1}, term: 1}, func(p *paper) {
		l := newPaperLoss(p)
		l.told = nil
		l.pauses()
		l.elections()
		if !l.loss.contact().GetGone() {
			t.Error("a silent leader that does not answer is not gone")
		}
		p.append("B", 2, 2, 1, 2)
		if l.loss.contact().GetGone() {
			t.Error("a leader that is heard is gone")
		}
		time.Sleep(time.Second)
		if l.loss.contact().GetGone() {
			t.Error("a leader that is silent again is gone without a dial")
		}
	})
}

// TestAVoterBeforeThisOneHasItsTurn: also if it notices the loss late, or its answers are
// slow; its turn begins when the evidence is complete.
func TestAVoterBeforeThisOneHasItsTurn(t *testing.T) {
	for _, tt := range []struct {
		name string
		// notices is when C knows that the leader is gone; it campaigns 3 ms after that, and
		// its answers take roundTrip.
		notices, roundTrip time.Duration
	}{
		{"at once", 0, 0},
		{"it notices late", 120 * time.Millisecond, 0},
		{"its answers are slow", 0, 100 * time.Millisecond},
		{"both", 60 * time.Millisecond, 60 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			paperTest(t, paperOptions{terms: []uint64{1, 1}, term: 1}, func(p *paper) {
				l := newPaperLoss(p)
				began := time.Now()
				l.loss.ask = func(ctx context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error) {
					if m.GetTag() != "C" {
						return nil, errors.New("no answer")
					}
					sleep(ctx, tt.roundTrip/2)
					since := time.Since(began)
					contact := &peerv1.LeaderContact{
						Term: 2, CanCampaign: true, LastIndex: 9, Gone: since >= tt.notices, Campaigned: since >= tt.notices+tt.roundTrip+3*time.Millisecond,
					}
					sleep(ctx, tt.roundTrip/2)
					return &peerv1.PingResponse{LeaderContact: contact}, ctx.Err()
				}
				l.ends()
				if got := l.elections(); len(got) > 0 {
					t.Errorf("it campaigned besides C: %+v", got)
				}
				synctest.Wait()
			})
		})
	}
}

// TestALeaderThatIsHeardAgainIsNotDeposed: its heartbeats are answered while Raft writes an
// entry, so that it leads on. Then Raft must not find that it must campaign.
func TestALeaderThatIsHeardAgainIsNotDeposed(t *testing.T) {
	paperTest(t, paperOptions{terms: []uint64{1, 1}, term: 1}, func(p *paper) {
		l := newPaperLoss(p)
		p.disk.slow(400 * time.Millisecond)
		go p.append("B", 2, 2, 1, 2, entry(3, 2))
		l.pauses()
		answered := 0
		l.meanwhile = func() {
			time.Sleep(290 * time.Millisecond)
			if l.loss.campaigned.Load() != 2 {
				t.Error("it does not campaign while the leader is silent: this test proves nothing")
			}
			l.told = &peerv1.LeaderContact{Term: 2, Connected: true, CanCampaign: true}
			for range 8 {
				var r raft.AppendEntriesResponse
				beat := &raft.AppendEntriesRequest{RPCHeader: paperHeader("B"), Term: 2}
				if err := p.others["B"].NetworkTransport.AppendEntries(paperID("A"), "", beat, &r); err == nil && r.Success {
					answered++
				}
				time.Sleep(25 * time.Millisecond)
			}
		}
		if got := l.elections(); len(got) > 0 || answered < 5 {
			t.Errorf("it campaigned after %d heartbeats that were answered: %+v", answered, got)
		}
		synctest.Wait()
	})
}

// TestACampaignIsToldWhileTheLeaderIsLost: a leader that is heard again may be lost again
// in the same term, and then another voter must campaign.
func TestACampaignIsToldWhileTheLeaderIsLost(t *testing.T) {
	paperTest(t, paperOptions{terms: []uint64{1, 1}, term: 1}, func(p *paper) {
		l := newPaperLoss(p)
		l.loss.campaigned.Store(2)
		if l.loss.contact().GetCampaigned() {
			t.Error("it says that it campaigns while it hears the leader")
		}
		time.Sleep(l.loss.lease)
		if !l.loss.contact().GetCampaigned() {
			t.Error("it does not say that it campaigns")
		}
	})
}
