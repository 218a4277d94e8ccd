package transport

import (
	"time"

	"github.com/hashicorp/raft"
)

// beatFor is for how long a write to the log may be in flight while heartbeats are
// answered: longer than that, and the disk is slow. A leader that needs a node which writes
// nothing must not lead on.
const beatFor = 500 * time.Millisecond

// write is a write to the log that Raft's main goroutine waits for.
//
// It answers nothing else meanwhile. So the leader's empty heartbeats are answered here: a
// leader that needs this node for a quorum would lose its lease at each slow write.
//
// Invariant: a heartbeat of a term is answered only while Raft's current term is that term,
// and Raft follows its sender. The entries in flight are of the term, and no request of a
// newer term was seen; so they come from the leader of that term, since the leader of a
// newer one would have been seen. Raft has that term on its disk before it writes them, and
// its term cannot change before the write has ended.
type write struct {
	// term is that of the newest of the entries.
	term  uint64
	begun time.Time
}

// beats reports whether a heartbeat is of the leader whose entries are being written.
func (w *write) beats(r *raft.AppendEntriesRequest) bool {
	return w != nil && w.term == r.Term && time.Since(w.begun) < beatFor
}

// Writing records that Raft writes entries to the log, the newest of which has this term;
// 0 means that it has ended. Raft's main goroutine calls it.
func (t *Transport) Writing(term uint64) {
	if term == 0 {
		t.inbound.write.Store(nil)
		return
	}
	t.inbound.write.Store(&write{term, time.Now()})
}
