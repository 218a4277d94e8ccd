// Package disklock has the lock of those who wait for the disk while they hold it.
package disklock

import "context"

// Mutex is a mutual exclusion lock that New makes. It is a channel, and not a sync.Mutex:
// in tests virtual time does not advance while a goroutine waits for one of those
// (testing/synctest), and the disk of a test takes virtual time.
type Mutex chan struct{}

// New returns an unlocked Mutex.
func New() Mutex { return make(Mutex, 1) }

// Lock waits until m is free, and locks it.
func (m Mutex) Lock() { m <- struct{}{} }

// LockContext is Lock. It fails when ctx ends.
func (m Mutex) LockContext(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlock unlocks m, which is locked.
func (m Mutex) Unlock() { <-m }
