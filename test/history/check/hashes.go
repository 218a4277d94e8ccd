package check

import (
	"fmt"

	"github.com/idnode/idnode/test/history"
)

// hashes judges state hashes: at one log index of one cluster there is one.
type hashes struct {
	seen map[stateKey]stateHash
}

type stateKey struct {
	cluster string
	index   uint64
}

type stateHash struct {
	hash uint64
	node string
	pos  int
}

func (h *hashes) add(op *history.Op, pos int, f *findings) {
	if h.seen == nil {
		h.seen = make(map[stateKey]stateHash)
	}
	key := stateKey{op.ID, op.Index}
	first, ok := h.seen[key]
	if !ok {
		h.seen[key] = stateHash{op.Hash, op.Node, pos}
		return
	}
	if first.hash != op.Hash {
		f.violation("hashes/differ", fmt.Sprint("index ", op.Index), []int{first.pos, pos},
			"node %s has the state hash %x, node %s has %x", first.node, first.hash, op.Node, op.Hash)
	}
}
