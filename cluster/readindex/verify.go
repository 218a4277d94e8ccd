package readindex

import "context"

// Future is what hashicorp/raft returns: its Error waits, perhaps permanently.
type Future interface{ Error() error }

// Await starts a Raft call and waits for its future, until ctx ends. Both may hang, so
// both run on a separate goroutine, which then leaks. Raft.Verify is made of VerifyLeader
// with it.
func Await(ctx context.Context, start func() Future) error {
	done := make(chan error, 1)
	go func() { done <- start().Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
