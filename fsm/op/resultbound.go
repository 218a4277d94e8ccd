package op

import "github.com/idnode/idnode/internal/wire"

const (
	// plainBound is more than a refusal's text without quoted names, more than a member with the
	// longest addresses, and more than the pieces of the largest block.
	plainBound = 2 << 10
	// quotedBound is more than the bytes that a byte of a name takes when quoted.
	quotedBound = 4
	// numberBound is above a number of a series with its key, text, scope, label, reason
	// and note.
	numberBound = 900

	seriesTakeKeys wire.Number = 5
	seriesEndKeys  wire.Number = 3

	seriesReconcileNumbers wire.Number = 3
)

// ResultBound returns an upper bound of the size of an encoded operation's result,
// in any state. It is at most raftlog.MaxResultBytes for every operation that
// keeps within the limits of the API.
func ResultBound(operation []byte) int {
	bound := plainBound + quotedBound*len(operation)
	for num, v := range wire.Fields(operation) {
		switch Kind(num) {
		case KindSeriesTake:
			bound += numbersBound(v.Bytes, seriesTakeKeys)
		case KindSeriesEnd:
			bound += numbersBound(v.Bytes, seriesEndKeys)
		case KindSeriesReconcile:
			bound += numbersBound(v.Bytes, seriesReconcileNumbers)
		}
	}
	return bound
}

// numbersBound is more than the numbers in the answer for all keys, and the number in a refusal.
func numbersBound(payload []byte, keys wire.Number) int {
	bound := numberBound
	for num := range wire.Fields(payload) {
		if num == keys {
			bound += numberBound
		}
	}
	return bound
}
