package leader

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/pause"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/papertest"
)

// What a voter may say of the leader of term 5.
var (
	goneIn5            = &peerv1.LeaderContact{Term: 5, Gone: true, CanCampaign: true, LastIndex: 10}
	goneSlow           = &peerv1.LeaderContact{Term: 5, Gone: true, CanCampaign: true, LastIndex: 10, Slow: true}
	goneSlowAt11       = &peerv1.LeaderContact{Term: 5, Gone: true, CanCampaign: true, LastIndex: 11, Slow: true}
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
		{
			"the other campaigned after an earlier leader",
			[]*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5, goneIn5, campaignedIn4},
			true, 0,
		},
		{"one of five campaigns already", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5, goneIn5, campaignedIn5}, false, 0},
		{"the leader follows a newer one", []*peerv1.LeaderContact{hearsIn6, goneIn5, goneIn5}, false, 0},
		{"two voters", []*peerv1.LeaderContact{leaderItself, goneIn5}, false, 0},
		{"a majority of five", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5, goneIn5, saysNothing}, true, 0},
		{"two of five", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5, saysNothing, saysNothing}, false, 0},
		{"one of five hears it", []*peerv1.LeaderContact{leaderItself, goneIn5, goneIn5, goneIn5, hearsIn5}, false, 0},
		{"the disk of C is slow", []*peerv1.LeaderContact{leaderItself, goneIn5, goneSlow}, true, 0},
		{"this node's disk is slow", []*peerv1.LeaderContact{leaderItself, goneSlow, goneIn5}, true, 1},
		{"this node's disk is slow, and its log reaches further", []*peerv1.LeaderContact{leaderItself, goneSlowAt11, goneIn5}, true, 0},
		{"both disks are slow", []*peerv1.LeaderContact{leaderItself, goneSlow, goneSlow}, true, 0},
		{"two of five reach further", []*peerv1.LeaderContact{leaderItself, goneIn5, goneAt11, goneIn5, goneAt11}, true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := lossEvidence{term: 5, silenceLimit: 100 * time.Millisecond, self: "B", replies: map[string]*peerv1.LeaderContact{}}
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

// paperLoss is the Loss of A. B leads term 2; C says what told has.
type paperLoss struct {
	*papertest.Node
	loss *Loss
	told *peerv1.LeaderContact
	// meanwhile is called while the loss is followed; nil waits for a second.
	meanwhile func()
}

func newPaperLoss(p *papertest.Node) *paperLoss {
	id := func(tag string) []byte {
		raw, err := nodeid.Parse(string(papertest.ID(tag)))
		p.Must(err)
		return raw[:]
	}
	var voters []*raftlogv1.Member
	for _, tag := range p.Options.Voters {
		voters = append(voters, &raftlogv1.Member{Id: id(tag), Tag: tag})
	}
	l := &paperLoss{Node: p, told: goneIn2}
	l.loss = &Loss{
		Raft: p.Raft, Transport: p.Self, Self: id("A"), Voters: func() []*raftlogv1.Member { return voters },
		Full: func() bool { return false }, Slow: func() bool { return false }, Priority: 1,
		Ask: func(_ context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error) {
			if m.GetTag() != "C" || l.told == nil {
				return nil, errors.New("no answer")
			}
			return &peerv1.PingResponse{LeaderContact: l.told}, nil
		},
		RoundTrip: func([]byte) time.Duration { return 0 },
		Heartbeat: 250 * time.Millisecond, Lease: 200 * time.Millisecond,
		Extra: func() time.Duration { return 0 }, Disconnected: func() {}, Log: slog.New(slog.DiscardHandler),
	}
	p.Append("B", 2, 2, 1, 2)
	return l
}

var goneIn2 = &peerv1.LeaderContact{Term: 2, Gone: true, CanCampaign: true}

// ends ends the leader's process, as a kill does.
func (l *paperLoss) ends() {
	l.Others["B"].Stop()
	delete(l.Others, "B")
}

// breaks ends the leader's connections; it lives.
func (l *paperLoss) breaks() { l.Others["B"].CloseStreams() }

// pauses has the leader's machine stand still: its connections stay.
func (l *paperLoss) pauses() { l.Network.Listen("B") }

// isFar has a new connection to the leader take 80 ms.
func (l *paperLoss) isFar() {
	const roundTrip = 80 * time.Millisecond
	l.loss.RoundTrip = func([]byte) time.Duration { return roundTrip }
	leader := l.Network["B"]
	l.Network.Listen("B")
	far := l.Network["B"]
	go func() {
		for {
			select {
			case c := <-far.Conns:
				time.AfterFunc(roundTrip, func() {
					select {
					case leader.Conns <- c:
					case <-leader.Done:
					}
				})
			case <-leader.Done:
				return
			}
		}
	}()
}

// beatsLate has the leader send a heartbeat each 90 ms.
func (l *paperLoss) beatsLate() {
	for range 10 {
		time.Sleep(90 * time.Millisecond)
		l.Append("B", 2, 2, 1, 2)
	}
}

// flaps breaks the leader's connections ten times. Each time it is back after 20 ms.
func (l *paperLoss) flaps() {
	for range 10 {
		l.breaks()
		time.Sleep(20 * time.Millisecond)
		l.Append("B", 2, 2, 1, 2)
	}
	time.Sleep(time.Second)
}

// elections runs until the heartbeat timeout would take over, and returns the requests
// for votes.
func (l *paperLoss) elections() []*raft.RequestVoteRequest {
	ctx, cancel := context.WithCancel(l.T.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.loss.Run(ctx)
	}()
	if l.meanwhile != nil {
		l.meanwhile()
	} else {
		time.Sleep(time.Second)
	}
	cancel()
	<-done
	return papertest.Received[*raft.RequestVoteRequest](l.Node, "C")
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
		{"the leader misses no heartbeat", func(l *paperLoss) {
			l.pauses()
			l.meanwhile = l.beatsLate
		}, false},
		{"a follower ended", func(l *paperLoss) {
			l.Append("C", 2, 2, 1, 2)
			l.Append("B", 2, 2, 1, 2)
			l.Others["C"].CloseStreams()
		}, false},
		{"this node closed the connections", func(l *paperLoss) { l.Self.Disconnect(papertest.ID("B")) }, false},
		{"there is another leader by now", func(l *paperLoss) {
			l.ends()
			l.Append("C", 3, 2, 1, 2)
		}, false},
		{"there is another candidate by now", func(l *paperLoss) {
			l.ends()
			l.Vote("C", 3, 9, 9)
		}, false},
		{"this node's disk is nearly full", func(l *paperLoss) {
			l.loss.Full = func() bool { return true }
			l.ends()
		}, false},
		{"this node's disk is slow, and so is the other's", func(l *paperLoss) {
			l.loss.Slow = func() bool { return true }
			l.told = &peerv1.LeaderContact{Term: 2, Gone: true, CanCampaign: true, Slow: true}
			l.ends()
		}, true},
		{"this node's disk is slow, and the other campaigns", func(l *paperLoss) {
			l.loss.Slow = func() bool { return true }
			l.told = &peerv1.LeaderContact{Term: 2, Gone: true, CanCampaign: true, Campaigned: true}
			l.ends()
		}, false},
		{"this node has priority 0", func(l *paperLoss) {
			l.loss.Priority = 0
			l.ends()
		}, false},
		{"this node has no vote", func(l *paperLoss) {
			l.loss.Self = []byte("another")
			l.ends()
		}, false},
		{"this node has stepped down", func(l *paperLoss) {
			l.Self.StepDown(1, time.Minute, time.Minute)
			l.ends()
		}, false},
		{"it has campaigned after this term", func(l *paperLoss) {
			l.loss.campaigned.Store(2)
			l.ends()
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			papertest.Run(t, papertest.Options{Terms: []uint64{1, 1}, Term: 1}, func(p *papertest.Node) {
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

// TestAnAnswerThatIsSlightlyLaterCounts: A has the evidence without E, which is before it, and campaigns
// as soon as its own evidence is complete.
func TestAnAnswerThatIsSlightlyLaterCounts(t *testing.T) {
	const roundTrip = 80 * time.Millisecond
	papertest.Run(t, papertest.Options{Terms: []uint64{1, 1}, Term: 1, Voters: []string{"A", "B", "C", "D", "E"}}, func(p *papertest.Node) {
		l := newPaperLoss(p)
		l.loss.Ask = func(_ context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error) {
			time.Sleep(roundTrip)
			told := &peerv1.LeaderContact{Term: 2, Gone: true, CanCampaign: true}
			if m.GetTag() == "E" {
				time.Sleep(roundTrip / 20)
				told.LastIndex, told.Campaigned = 9, true
			}
			return &peerv1.PingResponse{LeaderContact: told}, nil
		}
		l.ends()
		l.meanwhile = func() { time.Sleep(2 * roundTrip) }
		if got := l.elections(); len(got) > 0 {
			t.Errorf("it asked for votes beside E: %v", got)
		}
	})
}

// TestACandidateTellsOthersAtOnce: before its disk has the new term, so that nobody else
// campaigns in the same term.
func TestACandidateTellsOthersAtOnce(t *testing.T) {
	papertest.Run(t, papertest.Options{Terms: []uint64{1, 1}, Term: 1}, func(p *papertest.Node) {
		l := newPaperLoss(p)
		if l.loss.Contact().GetCampaigned() {
			t.Error("it says that it campaigns, while it follows")
		}
		p.Disk.Slow(200 * time.Millisecond)
		l.ends()
		l.meanwhile = func() {
			time.Sleep(100 * time.Millisecond)
			if c := l.loss.Contact(); c.GetTerm() != 2 || !c.GetCampaigned() {
				t.Errorf("while it writes the new term: %v", c)
			}
			if asked := papertest.Received[*raft.RequestVoteRequest](p, "C"); len(asked) > 0 {
				t.Errorf("it asks for votes already: %v", asked)
			}
			time.Sleep(time.Second)
		}
		if got := l.elections(); len(got) != 1 {
			t.Errorf("it asked for votes: %v", got)
		}
		p.Disk.Slow(0)
		p.Append("C", 4, 2, 1, 2)
		if c := l.loss.Contact(); c.GetTerm() != 4 || c.GetCampaigned() {
			t.Errorf("it still says so with another leader: %v", c)
		}
	})
}

// TestContactIsTold: what a voter answers of its contact with the leader.
func TestContactIsTold(t *testing.T) {
	papertest.Run(t, papertest.Options{Terms: []uint64{1, 1}, Term: 1}, func(p *papertest.Node) {
		l := newPaperLoss(p)
		time.Sleep(20 * time.Millisecond)
		if c := l.loss.Contact(); c.GetTerm() != 2 || !c.GetConnected() || c.GetGone() || !c.GetCanCampaign() || c.GetLastIndex() != 2 ||
			c.GetSilentMicros() != 20_000 {
			t.Errorf("while it follows: %v", c)
		}
		l.told = nil
		l.ends()
		if got := l.elections(); len(got) > 0 {
			t.Errorf("it campaigned: %v", got)
		}
		if c := l.loss.Contact(); c.GetTerm() != 2 || c.GetConnected() || !c.GetGone() {
			t.Errorf("when the leader is gone: %v", c)
		}
		p.Append("C", 3, 2, 1, 2)
		if c := l.loss.Contact(); c.GetTerm() != 3 || !c.GetConnected() || c.GetGone() {
			t.Errorf("with another leader: %v", c)
		}
	})
}

// TestALeaderThatIsHeardAgainIsNotGone: also when it falls silent once more, until it has
// been dialled without an answer once more.
func TestALeaderThatIsHeardAgainIsNotGone(t *testing.T) {
	papertest.Run(t, papertest.Options{Terms: []uint64{1, 1}, Term: 1}, func(p *papertest.Node) {
		l := newPaperLoss(p)
		l.told = nil
		l.pauses()
		l.elections()
		if !l.loss.Contact().GetGone() {
			t.Error("a silent leader that does not answer is not gone")
		}
		p.Append("B", 2, 2, 1, 2)
		if l.loss.Contact().GetGone() {
			t.Error("a leader that is heard is gone")
		}
		time.Sleep(time.Second)
		if l.loss.Contact().GetGone() {
			t.Error("a leader that is silent again is gone without a dial")
		}
	})
}

// TestAPausedProcessListensAnew: it could not hear the leader meanwhile.
func TestAPausedProcessListensAnew(t *testing.T) {
	papertest.Run(t, papertest.Options{Terms: []uint64{1, 1}, Term: 1}, func(p *papertest.Node) {
		l := newPaperLoss(p)
		limit := l.loss.silenceLimit(papertest.ID("B"))
		time.Sleep(limit)
		if !l.loss.lost(p.Self.Contact()) {
			t.Error("a silent leader is not lost")
		}
		awake := time.Now()
		l.loss.awake.Store(&awake)
		time.Sleep(limit - 1)
		if l.loss.lost(p.Self.Contact()) {
			t.Error("it takes the time for silence in which it stood still")
		}
		time.Sleep(time.Nanosecond)
		if !l.loss.lost(p.Self.Contact()) {
			t.Error("a leader that stays silent is not lost")
		}
	})
}

// TestSilenceFollowsTheLink: on a slow link heartbeats come less often, and on a busy machine late.
func TestSilenceFollowsTheLink(t *testing.T) {
	const ms = time.Millisecond
	for roundTrip, want := range map[time.Duration]time.Duration{0: 140 * ms, 5 * ms: 150 * ms, 50 * ms: 240 * ms, 300 * ms: 240 * ms} {
		l := &Loss{
			Heartbeat: 250 * ms, Lease: 200 * ms, RoundTrip: func([]byte) time.Duration { return roundTrip },
			Extra: func() time.Duration { return 40 * ms },
		}
		if got := l.silenceLimit(papertest.ID("B")); got != want {
			t.Errorf("round trip %v: %v, want %v", roundTrip, got, want)
		}
	}
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
			papertest.Run(t, papertest.Options{Terms: []uint64{1, 1}, Term: 1}, func(p *papertest.Node) {
				l := newPaperLoss(p)
				began := time.Now()
				l.loss.Ask = func(ctx context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error) {
					if m.GetTag() != "C" {
						return nil, errors.New("no answer")
					}
					pause.For(ctx, tt.roundTrip/2)
					since := time.Since(began)
					contact := &peerv1.LeaderContact{
						Term: 2, CanCampaign: true, LastIndex: 9, Gone: since >= tt.notices, Campaigned: since >= tt.notices+tt.roundTrip+3*time.Millisecond,
					}
					pause.For(ctx, tt.roundTrip/2)
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
	papertest.Run(t, papertest.Options{Terms: []uint64{1, 1}, Term: 1}, func(p *papertest.Node) {
		l := newPaperLoss(p)
		p.Disk.Slow(400 * time.Millisecond)
		go p.Append("B", 2, 2, 1, 2, papertest.Entry(3, 2))
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
				beat := &raft.AppendEntriesRequest{RPCHeader: papertest.Header("B"), Term: 2}
				if err := p.Others["B"].NetworkTransport.AppendEntries(papertest.ID("A"), "", beat, &r); err == nil && r.Success {
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
	papertest.Run(t, papertest.Options{Terms: []uint64{1, 1}, Term: 1}, func(p *papertest.Node) {
		l := newPaperLoss(p)
		l.loss.campaigned.Store(2)
		if l.loss.Contact().GetCampaigned() {
			t.Error("it says that it campaigns while it hears the leader")
		}
		time.Sleep(l.loss.Lease)
		if !l.loss.Contact().GetCampaigned() {
			t.Error("it does not say that it campaigns")
		}
	})
}
