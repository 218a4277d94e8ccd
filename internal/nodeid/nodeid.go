// Package nodeid is the id of a node: its bytes and its text.
package nodeid

import (
	"encoding/hex"
	"fmt"
)

// Size is the length of an id in bytes.
const Size = 16

// ID is a node's Raft id: random, written into its data directory at the first start, and
// never given to another directory. Messages carry its bytes; Raft, files and log lines
// have its 32 hexadecimal digits.
type ID [Size]byte

// FromBytes returns the id with these 16 bytes.
func FromBytes(b []byte) (ID, error) {
	if len(b) != Size {
		return ID{}, fmt.Errorf("a Raft id has %d bytes, not %d", Size, len(b))
	}
	return ID(b), nil
}

// Parse returns the id with these 32 hexadecimal digits.
func Parse(s string) (ID, error) {
	b, err := hex.DecodeString(s)
	if err != nil {
		return ID{}, fmt.Errorf("%q is not a Raft id: %w", s, err)
	}
	return FromBytes(b)
}

// String returns the 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = Parse(string(text))
	return err
}

// Bytes returns a copy of the 16 bytes.
func (id ID) Bytes() []byte { return id[:] }
