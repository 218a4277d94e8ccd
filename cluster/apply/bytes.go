package apply

import "sync/atomic"

// appliedBytes counts the bytes of the entries applied since the state was last frozen
// for a snapshot. The Raft library counts entries only. Only the goroutine that
// applies uses it, but for full.
type appliedBytes struct {
	bytes, limit int64
	// full means that the limit was passed.
	full atomic.Bool
}

// applied counts an entry. Each time the limit is passed the count restarts, so that a
// failed snapshot is tried again.
func (v *appliedBytes) applied(bytes int) {
	v.bytes += int64(bytes)
	if v.bytes < v.limit {
		return
	}
	v.bytes = 0
	v.full.Store(true)
}

// frozen says that a snapshot has begun.
func (v *appliedBytes) frozen() { v.bytes = 0 }
