package raftguard

import (
	"context"

	"github.com/hashicorp/raft"
)

// Await starts a call of the library and waits for its future, until ctx ends. A future may
// never resolve (hashicorp/raft issue 498), and a call may hang, so both run on a separate
// goroutine, which then leaks.
func Await(ctx context.Context, start func() raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- start().Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
