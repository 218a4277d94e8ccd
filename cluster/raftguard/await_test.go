package raftguard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

var errFuture = errors.New("it failed")

func TestAwaitLeavesWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := Await(ctx, func() raft.Future { <-release; return done{} })
		if err != context.DeadlineExceeded {
			t.Fatalf("got %v", err)
		}
		close(release)
		if err := Await(t.Context(), func() raft.Future { return done{errFuture} }); err != errFuture {
			t.Fatalf("got %v", err)
		}
	})
}

type done struct{ err error }

func (d done) Error() error { return d.err }
