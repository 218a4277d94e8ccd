package client

import (
	"fmt"
	"strconv"
	"strings"
)

// A value that was taken together with others has the request id of the block,
// a point, its place in it from 1, a slash, and the size of the block: with that
// a caller can ask for it again.

// id returns the request id with which the ticket's value is asked for again.
func (t *ticket) id() string {
	return fmt.Sprintf("%s.%d/%d", t.block.id, t.index+1, len(t.block.tickets))
}

// sharedRef names one value of a block.
type sharedRef struct {
	// id is the request id of the block, of size values; index is from 0.
	id          string
	index, size int
}

// parseShared reads a request id that id wrote; false for any other.
func parseShared(requestID string) (sharedRef, bool) {
	id, place, dotted := strings.Cut(requestID, ".")
	index, size, slashed := strings.Cut(place, "/")
	if !dotted || !slashed || len(id) != randomIDLength || strings.Trim(id, "0123456789abcdef") != "" {
		return sharedRef{}, false
	}
	p := sharedRef{id: id}
	var errIndex, errSize error
	p.index, errIndex = strconv.Atoi(index)
	p.size, errSize = strconv.Atoi(size)
	p.index--
	return p, errIndex == nil && errSize == nil && 0 <= p.index && p.index < p.size && p.size <= maxShare
}

// valueAt returns the value at a place in blocks; false if they have fewer.
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
