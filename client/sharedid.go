package client

import (
	"fmt"
	"strconv"
	"strings"
)

// blockPrefix begins the request id of a block, as in block.HEX.3 for a block of three values.
// The error of one of its callers appends the position of its value, from 1, as in
// block.HEX.3.2, with which the caller can ask for it again. A node refuses ids with this
// prefix in all other calls: no call takes a single value under the id of a block.
const blockPrefix = "block."

// newBlockID returns the request id of a block of this size.
func newBlockID(size int) string { return fmt.Sprintf("%s%s.%d", blockPrefix, randomID(), size) }

// id returns the request id with which the ticket's value can be asked for again.
func (t *ticket) id() string { return fmt.Sprintf("%s.%d", t.block.id, t.index+1) }

// sharedRef identifies one value of a block.
type sharedRef struct {
	// id is the request id of the block, of size values; index is from 0.
	id          string
	index, size int
}

// parseShared parses a request id of ticket.id; false for any other.
func parseShared(requestID string) (sharedRef, bool) {
	parts := strings.Split(requestID, ".")
	if !strings.HasPrefix(requestID, blockPrefix) || len(parts) != 4 {
		return sharedRef{}, false
	}
	size, errSize := strconv.Atoi(parts[2])
	place, errPlace := strconv.Atoi(parts[3])
	ref := sharedRef{id: strings.Join(parts[:3], "."), index: place - 1, size: size}
	return ref, errSize == nil && errPlace == nil && 1 <= place && place <= size && size <= maxShare
}

// valueAt returns the value at a position in blocks; false if they have fewer.
func valueAt(blocks []Values, index int) (int64, bool) {
	for _, b := range blocks {
		if n := b.Last - b.First + 1; int64(index) >= n {
			index -= int(n)
			continue
		}
		return b.First + int64(index), true
	}
	return 0, false
}
