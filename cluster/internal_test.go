package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
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
