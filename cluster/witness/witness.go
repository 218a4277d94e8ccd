// Package witness keeps what this node has seen of the disks of other members, and
// detects a member whose data directory was set back to an older copy, or whose process was
// with it, by a snapshot of a running virtual machine. It does no I/O and has no connections.
package witness

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

// DiskState is how far a node's disk is. The order of its fields is that of the handshake between
// nodes.
type DiskState struct {
	// Trusted means that an operator trusts the data directory.
	Trusted bool
	// Starts is how often the node was started, this time included.
	Starts uint64
	// Last is the index of the newest entry in the log, or of the newest snapshot's
	// end. It is read before Term: a log loses its end only when the term has risen.
	Last uint64
	// LastTerm is the term of that entry. Of two logs, the log with the later last term is the
	// more up-to-date, and of equal last terms the longer log (raft paper 5.4.1).
	LastTerm uint64
	// Term is the term on disk.
	Term uint64
	// Committed is an index up to which the node knows entries to be committed. It is at
	// most Last, and 0 when the node has just started.
	Committed uint64
	// Age is how long its process has run, by a clock that never goes back: not when the
	// process is paused, nor when its machine sleeps or is moved.
	Age time.Duration
}

// Behind reports whether the log is less up-to-date than a log with this last entry.
func (p DiskState) Behind(lastTerm, last uint64) bool {
	return p.LastTerm < lastTerm || p.LastTerm == lastTerm && p.Last < last
}

// Seen is what is known of a member's disk. All of it stays true permanently, unless the
// disk loses fsynced data:
//
//   - each start has a number above those before;
//   - the term never falls;
//   - entries that were committed when the member had them are never deleted;
//   - entries that the member acknowledged to the leader of a term stay as long as the
//     term does. In a later term a leader may delete them, so a last index alone says
//     nothing.
type Seen struct {
	// Process is the random number of the process that was compared last.
	Process   uint64 `json:"process"`
	Starts    uint64 `json:"starts"`
	Term      uint64 `json:"term"`
	Committed uint64 `json:"committed"`
	// Match is the newest index that was acknowledged in MatchTerm.
	MatchTerm uint64 `json:"match_term"`
	Match     uint64 `json:"match"`
	// Age is that of the process, and never falls as long as it runs.
	Age time.Duration `json:"age"`
}

// Contradicts returns why p cannot be a later state of the same disk, or of the same
// process, or nil.
func (s *Seen) Contradicts(process uint64, p DiskState) error {
	switch {
	case process == s.Process && p.Age < s.Age:
		return fmt.Errorf("its process had run for %v, and says %v", s.Age, p.Age)
	case process != s.Process && p.Starts <= s.Starts:
		return fmt.Errorf("it was started %d times, and says %d", s.Starts, p.Starts)
	case p.Term < s.Term:
		return fmt.Errorf("it was in term %d, and says %d", s.Term, p.Term)
	case p.Last < s.Committed:
		return fmt.Errorf("it had committed entry %d, and its log ends at %d", s.Committed, p.Last)
	case p.Term == s.MatchTerm && p.Last < s.Match:
		return fmt.Errorf("it acknowledged entry %d in term %d, and its log ends at %d", s.Match, s.MatchTerm, p.Last)
	}
	return nil
}

// Witness is safe for concurrent use.
type Witness struct {
	mu      sync.Mutex
	members map[string]Seen
	// changes counts the changes of members.
	changes uint64
}

// New returns a witness that knows what was stored.
func New(stored map[string]Seen) *Witness {
	w := &Witness{members: map[string]Seen{}}
	maps.Copy(w.members, stored)
	return w
}

// Seen returns what is known of a member.
func (w *Witness) Seen(id string) Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.members[id]
}

// Accept returns nil if a process may be the member id: its disk has everything that the
// member's disk was seen to have. asked is the seen state when the process was asked for p. A
// state that the process sent unasked is compared once for each process, and then asked is
// empty: later acknowledgements may arrive before an earlier greeting.
func (w *Witness) Accept(id string, process uint64, p DiskState, asked Seen) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.members[id]
	switch {
	case s.Process != process:
		if p.Trusted {
			s = Seen{}
		}
		asked = s
	case asked.Process != process:
		return nil
	}
	if err := asked.Contradicts(process, p); err != nil {
		return err
	}
	if s.Process != process {
		s.Process, s.Starts, s.Age = process, p.Starts, 0
	}
	s.Term, s.Committed, s.Age = max(s.Term, p.Term), max(s.Committed, p.Committed), max(s.Age, p.Age)
	w.members[id] = s
	w.changes++
	return nil
}

// Acknowledged records what a member's message proves: that its disk has the term, the entries
// up to match under the leader of that term, and the committed entries up to committed. The
// process that sent it, or an earlier one, was accepted.
func (w *Witness) Acknowledged(id string, term, match, committed uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acknowledged(id, w.members[id], term, match, committed)
}

// Told records what a member sends by other means than the Raft port. It counts only if it is
// from the process that was accepted last. An age alone needs no record.
func (w *Witness) Told(id string, process, term, committed uint64, age time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, known := w.members[id]; known && s.Process == process {
		s.Age = max(s.Age, age)
		w.members[id] = s
		w.acknowledged(id, s, term, 0, committed)
	}
}

// acknowledged is Acknowledged of a member that was seen as before. The caller holds the lock.
func (w *Witness) acknowledged(id string, before Seen, term, match, committed uint64) {
	s := before
	s.Term, s.Committed = max(s.Term, term), max(s.Committed, committed)
	switch {
	case match > 0 && term > s.MatchTerm:
		s.MatchTerm, s.Match = term, match
	case term == s.MatchTerm:
		s.Match = max(s.Match, match)
	}
	if s != before {
		w.members[id] = s
		w.changes++
	}
}

// Known returns a copy of the known disk states, and how often it has changed.
func (w *Witness) Known() (members map[string]Seen, changes uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.members), w.changes
}
