package member

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/nodeid"
)

// NewID returns a random id.
func NewID() (id nodeid.ID) {
	_, _ = rand.Read(id[:]) // It never fails.
	return id
}

// ServerID returns the Raft name of the member with these raw id bytes, which
// may come from a message: a wrong length gives a name that no node has.
func ServerID(raw []byte) raft.ServerID { return raft.ServerID(hex.EncodeToString(raw)) }
