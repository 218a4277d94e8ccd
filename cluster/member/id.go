package member

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/hashicorp/raft"
)

// IDSize is the length of a Raft id in bytes.
const IDSize = 16

// ID is a node's Raft id: random, written into its data directory at the first
// start, and never given to another directory. Messages carry its 16 bytes,
// Raft and log lines its 32 hexadecimal digits.
type ID [IDSize]byte

// NewID returns a random id.
func NewID() (ID, error) {
	var id ID
	if _, err := rand.Read(id[:]); err != nil {
		return ID{}, fmt.Errorf("member: drawing a random id: %w", err)
	}
	return id, nil
}

// IDFromBytes returns the id with these 16 bytes.
func IDFromBytes(b []byte) (ID, error) {
	if len(b) != IDSize {
		return ID{}, fmt.Errorf("member: a Raft id has %d bytes, not %d", IDSize, len(b))
	}
	return ID(b), nil
}

// ParseID returns the id with these 32 hexadecimal digits.
func ParseID(s string) (ID, error) {
	b, err := hex.DecodeString(s)
	if err != nil {
		return ID{}, fmt.Errorf("member: %q is not a Raft id: %w", s, err)
	}
	return IDFromBytes(b)
}

// String returns the 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// ServerID returns the id as Raft writes it.
func (id ID) ServerID() raft.ServerID { return raft.ServerID(id.String()) }

// Bytes returns a copy of the 16 bytes.
func (id ID) Bytes() []byte { return append([]byte(nil), id[:]...) }

// ServerID returns the Raft name of the member with these raw id bytes, which
// may come from a message: a wrong length gives a name that no node has.
func ServerID(raw []byte) raft.ServerID { return raft.ServerID(hex.EncodeToString(raw)) }
