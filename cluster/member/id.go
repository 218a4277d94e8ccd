package member

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/nodeid"
)

// NewID returns a random id.
func NewID() (id nodeid.ID) {
	_, _ = rand.Read(id[:]) // rand.Read never fails.
	return id
}

// ServerID returns the Raft id of the member with these raw id bytes, which may come from a
// message: a wrong length gives an id that no node has.
func ServerID(raw []byte) raft.ServerID { return raft.ServerID(hex.EncodeToString(raw)) }
