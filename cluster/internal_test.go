package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

func TestHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader := bytes.Repeat([]byte{0xaa}, 16)
		name := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		h := &hint{}
		choose := func(own string) string { return h.choose(time.Now(), own, "self") }
		h.heard(time.Now(), leader)
		if got := choose("own"); got != "own" {
			t.Errorf("%q, want what Raft says", got)
		}
		if got := choose(""); got != "" {
			t.Errorf("%q during an election, want nobody", got)
		}
		time.Sleep(hintAfter)
		if got := choose(""); got != "" {
			t.Errorf("%q from an old hint, want nobody", got)
		}
		h.heard(time.Now(), leader)
		if got := choose(""); got != name {
			t.Errorf("%q, want the hint", got)
		}
	})
}

// TestWhereTheLeaderIs: another node's table counts until Raft here has a leader, unless
// it is of an earlier start of the leader.
func TestWhereTheLeaderIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(starts uint64, address string) *raftlogv1.Member {
			return &raftlogv1.Member{Id: []byte("1"), GrpcAddress: address, Starts: starts}
		}
		h := &hint{}
		want := func(known *raftlogv1.Member, address string) {
			t.Helper()
			if got := h.locate(known).GetGrpcAddress(); got != address {
				t.Errorf("%q, want %q", got, address)
			}
		}
		h.choose(time.Now(), "own", "self")
		h.found(at(2, "new"))
		want(at(1, "old"), "old")
		h.choose(time.Now(), "", "self")
		if h.ask(time.Now()) {
			t.Error("others are asked during an election")
		}
		time.Sleep(hintAfter)
		if !h.ask(time.Now()) || h.ask(time.Now()) {
			t.Error("others are not asked once")
		}
		h.found(at(2, "new"))
		want(at(1, "old"), "new")
		want(at(3, "newest"), "newest")
		want(&raftlogv1.Member{Id: []byte("2"), GrpcAddress: "another"}, "another")
		h.choose(time.Now(), "own", "self")
		h.choose(time.Now(), "", "self")
		want(at(1, "old"), "old")
	})
}

func TestStuckTransfer(t *testing.T) {
	refused := raft.ErrLeadershipTransferInProgress
	tests := []struct {
		name string
		run  func(w *stuckTransfer)
		ends bool
	}{
		{"refusals all the time", func(w *stuckTransfer) { refuse(w, stuckTransferLimit+2*time.Second) }, true},
		{"refusals for as long as is allowed", func(w *stuckTransfer) { refuse(w, stuckTransferLimit) }, false},
		{"progress between refusals", func(w *stuckTransfer) {
			refuse(w, stuckTransferLimit)
			w.saw(nil)
			refuse(w, stuckTransferLimit)
		}, false},
		{"two short transfers of an idle leader, an hour apart", func(w *stuckTransfer) {
			w.saw(refused)
			time.Sleep(time.Hour)
			w.saw(refused)
		}, false},
		{"two leaderships", func(w *stuckTransfer) {
			refuse(w, stuckTransferLimit)
			w.reset()
			refuse(w, stuckTransferLimit)
		}, false},
		{"a proposal that Raft did not take", func(w *stuckTransfer) {
			refuse(w, stuckTransferLimit)
			w.saw(raft.ErrEnqueueTimeout)
			refuse(w, 2*time.Second)
		}, true},
		{"one refusal, and nobody proposes while the transfer is stuck", func(w *stuckTransfer) {
			ctx, cancel := context.WithTimeout(context.Background(), stuckTransferLimit+2*time.Second)
			defer cancel()
			w.saw(refused)
			w.probe(ctx, func() error { return refused })
		}, true},
		{"one refusal, and the transfer has ended", func(w *stuckTransfer) {
			ctx, cancel := context.WithTimeout(context.Background(), stuckTransferLimit+2*time.Second)
			defer cancel()
			w.saw(refused)
			w.probe(ctx, func() error { return errors.New("configuration changed") })
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fatal error
				tt.run(&stuckTransfer{limit: stuckTransferLimit, fatal: func(err error) { fatal = err }})
				if errors.Is(fatal, refused) != tt.ends {
					t.Errorf("the process ends with %v; must it end: %v", fatal, tt.ends)
				}
			})
		})
	}
}

// refuse lets Raft refuse a proposal each second, for a time.
func refuse(w *stuckTransfer, d time.Duration) {
	for begin := time.Now(); time.Since(begin) <= d; time.Sleep(time.Second) {
		w.saw(raft.ErrLeadershipTransferInProgress)
	}
}

func TestTimings(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	tests := []struct {
		name    string
		timings Timings
		ok      bool
	}{
		{"defaults", Timings{}, true},
		{"slow heartbeat alone", Timings{Heartbeat: ms(1000)}, true},
		{"fast heartbeat alone", Timings{Heartbeat: ms(50)}, true},
		{"heartbeat too fast", Timings{Heartbeat: ms(10)}, false},
		{"election shorter than heartbeat", Timings{Heartbeat: ms(500), Election: ms(400)}, false},
		{"lease longer than heartbeat", Timings{Heartbeat: ms(300), Lease: ms(400)}, false},
		{"lease too short", Timings{Lease: ms(5)}, false},
		{"commit not shorter than heartbeat", Timings{Heartbeat: ms(300), Commit: ms(300)}, false},
	}
	for _, tt := range tests {
		if err := tt.timings.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestDefaultsThatFollow: what follows from the defaults that are settings.
func TestDefaultsThatFollow(t *testing.T) {
	c, _ := Config{}.withDefaults()
	ms := time.Millisecond
	got := []any{c.Timings, c.SlowLimit, c.LeaderWait, c.SnapshotThreshold, c.TrailingLogs}
	want := []any{Timings{Heartbeat: 250 * ms, Election: 250 * ms, Lease: 200 * ms, Commit: 20 * ms}, 500 * ms, 2000 * ms, uint64(16_384), uint64(8_192)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSpace(t *testing.T) {
	free, err := uint64(100), error(nil)
	s := newSpace(func() (uint64, error) { return free, err }, 50, slog.New(slog.DiscardHandler))
	if s.full() {
		t.Error("full with space above the mark")
	}
	free = 49
	s.look()
	if !s.full() {
		t.Error("not full below the mark")
	}
	free, err = 0, errors.New("not known")
	s.below.Store(false)
	s.look()
	if s.full() {
		t.Error("full although nobody knows")
	}
	s.others.Store(true)
	if !s.full() {
		t.Error("not full although a quorum of others is")
	}
}

// TestADiskIsSlowForSomeTime: from a slow write on, until slowHold after the last one.
func TestADiskIsSlowForSomeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk(slog.New(slog.DiscardHandler))
		is := func(hangs, slow bool) {
			t.Helper()
			if d.hangs() != hangs || d.slow(time.Now()) != slow {
				t.Errorf("hangs %v, slow %v; want %v, %v", d.hangs(), d.slow(time.Now()), hangs, slow)
			}
		}
		is(false, false)
		d.slowed(true)
		time.Sleep(time.Minute)
		is(true, true)
		d.slowed(true)
		d.slowed(false)
		is(true, true)
		d.slowed(false)
		is(false, true)
		time.Sleep(slowHold - time.Nanosecond)
		is(false, true)
		time.Sleep(time.Nanosecond)
		is(false, false)
	})
}

// TestPingsComeSoonAfterAStart: while a member is silent, and not for longer than a start
// takes.
func TestPingsComeSoonAfterAStart(t *testing.T) {
	silent := map[string]time.Time{"B": time.Now()}
	tests := []struct {
		name   string
		silent map[string]time.Time
		age    time.Duration
		want   time.Duration
	}{
		{"all answer", nil, 0, memberPingEvery},
		{"one is silent", silent, startPings - 1, startPingEvery},
		{"one is silent for long", silent, startPings, memberPingEvery},
	}
	for _, tt := range tests {
		p := &memberPinger{silent: tt.silent}
		if got := p.interval(tt.age); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
