package raftguard

import "context"

// Await makes a call of the library and waits for its outcome, until ctx ends. A future may never
// resolve (hashicorp/raft issue 498), and a call may hang, so both belong into call, which runs
// on a separate goroutine, and then leaks.
func Await(ctx context.Context, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
