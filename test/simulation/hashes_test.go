package simulation

import (
	"io"
	"sync"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/raftlog"
)

// hashes compares the states of all nodes after each entry: at one index there is
// one hash, on any node and in any process. States that differ for a
// moment only, or of which one is replaced by a snapshot before the end, are
// found too.
type hashes struct {
	mu   sync.Mutex
	seen map[uint64]stateHash
	// differ says that the first difference was found. All that come after it tell
	// nothing new.
	differ bool
}

// stateHash is the hash at one index, and the machine that had it first.
type stateHash struct {
	hash uint64
	host string
}

func newHashes() hashes { return hashes{seen: map[uint64]stateHash{}} }

// differs records the hash that a machine has at an index. It returns the one that
// another had there, if it is a different one, the first time.
func (h *hashes) differs(index uint64, now stateHash) (first stateHash, differ bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, known := h.seen[index]
	if !known {
		h.seen[index] = now
		return first, false
	}
	if h.differ || first.hash == now.hash {
		return first, false
	}
	h.differ = true
	return first, true
}

// watch returns the process's state as one whose hashes are compared, and whose steps
// the model judges.
func (p *process) watch(state *fsm.State) cluster.StateMachine { return watched{state, p.server, p} }

// watched is a state that is looked at after each entry.
type watched struct {
	*fsm.State
	server  *server
	process *process
}

// Apply implements cluster.StateMachine.
func (w watched) Apply(index uint64, entry []byte) ([]raftlog.GroupResult, error) {
	tracer := w.server.world.tracer
	tracer.applying(w.process, index, entry)
	results, err := w.State.Apply(index, entry)
	if err == nil {
		tracer.applied(w.process, index, entry, results)
	}
	w.compare()
	return results, err
}

// Skip implements cluster.StateMachine.
func (w watched) Skip(index uint64) {
	w.server.world.tracer.applying(w.process, index, nil)
	w.State.Skip(index)
	w.compare()
}

// Restore implements cluster.StateMachine.
func (w watched) Restore(r io.Reader) error {
	if w.server.world.plan.slow.installs {
		w.server.current().session.linger()
	}
	err := w.State.Restore(r)
	w.server.world.tracer.restored(w.process, w.State.AppliedIndex())
	w.compare()
	return err
}

// Hash implements cluster.StateMachine. A state that was changed has the hash of one
// with another record.
func (w watched) Hash() (index, hash uint64) {
	index, hash = w.State.Hash()
	if w.server.changed.Load() {
		hash++
	}
	return index, hash
}

func (w watched) compare() {
	index, hash := w.State.Hash()
	world, host := w.server.world, w.server.host
	if first, differ := world.hashes.differs(index, stateHash{hash, host}); differ {
		world.found("at index %d node %s has the state hash %x, node %s had %x", index, host, hash, first.host, first.hash)
	}
}
