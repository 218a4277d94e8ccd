package raftguard

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

func TestStuckTransfer(t *testing.T) {
	refused := raft.ErrLeadershipTransferInProgress
	tests := []struct {
		name string
		run  func(w *StuckTransfer)
		ends bool
	}{
		{"refusals all the time", func(w *StuckTransfer) { refuse(w, stuckTransferLimit+2*time.Second) }, true},
		{"refusals for as long as is allowed", func(w *StuckTransfer) { refuse(w, stuckTransferLimit) }, false},
		{"progress between refusals", func(w *StuckTransfer) {
			refuse(w, stuckTransferLimit)
			w.Saw(nil)
			refuse(w, stuckTransferLimit)
		}, false},
		{"two short transfers of an idle leader, an hour apart", func(w *StuckTransfer) {
			w.Saw(refused)
			time.Sleep(time.Hour)
			w.Saw(refused)
		}, false},
		{"two leaderships", func(w *StuckTransfer) {
			refuse(w, stuckTransferLimit)
			w.Reset()
			refuse(w, stuckTransferLimit)
		}, false},
		{"a proposal that Raft did not take", func(w *StuckTransfer) {
			refuse(w, stuckTransferLimit)
			w.Saw(raft.ErrEnqueueTimeout)
			refuse(w, 2*time.Second)
		}, true},
		{"one refusal, and nobody proposes while the transfer is stuck", func(w *StuckTransfer) {
			w.Saw(refused)
			probe(w, refused)
		}, true},
		{"one refusal, and the transfer has ended", func(w *StuckTransfer) {
			w.Saw(refused)
			probe(w, errors.New("configuration changed"))
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fatal error
				tt.run(NewStuckTransfer(func(err error) { fatal = err }))
				if errors.Is(fatal, refused) != tt.ends {
					t.Errorf("the process ends with %v; must it end: %v", fatal, tt.ends)
				}
			})
		})
	}
}

// refuse lets Raft refuse a proposal each second, for a time.
func refuse(w *StuckTransfer, d time.Duration) {
	for begin := time.Now(); time.Since(begin) <= d; time.Sleep(time.Second) {
		w.Saw(raft.ErrLeadershipTransferInProgress)
	}
}

// probe asks Raft, which gives this answer, as a leader does.
func probe(w *StuckTransfer, answer error) {
	for begin := time.Now(); time.Since(begin) < stuckTransferLimit+2*time.Second; time.Sleep(StuckTransferProbe) {
		if w.Refuses() {
			w.Saw(answer)
		}
	}
}
