package raftguard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errFuture = errors.New("it failed")

func TestAwaitLeavesWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := Await(ctx, func() error { <-release; return nil })
		if err != context.DeadlineExceeded {
			t.Fatalf("got %v", err)
		}
		close(release)
		if err := Await(t.Context(), func() error { return errFuture }); err != errFuture {
			t.Fatalf("got %v", err)
		}
	})
}
