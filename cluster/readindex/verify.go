package readindex

import "context"

// Future is what hashicorp/raft returns: its Error waits, perhaps permanently.
type Future interface{ Error() error }

// Await starts something of Raft's and waits for its future, at most until ctx
// ends. Both may hang, so both happen on a goroutine of their own, which is
// left behind if they do. It is how Raft.Verify is made of VerifyLeader.
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
