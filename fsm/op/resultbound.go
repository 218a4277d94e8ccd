package op

import "github.com/idnode/idnode/internal/wire"

const (
	// plainBound is above the words of a refusal without what they quote, above a member
	// with the longest addresses, and above the pieces of the largest block.
	plainBound = 2 << 10
	// quotedBound is above what a byte of a name becomes where words quote it.
	quotedBound = 4
	// numberBound is above a number of a series with its key, text, scope, label and
	// reason.
	numberBound = 832

	seriesTakeKeys wire.Number = 5
	seriesEndKeys  wire.Number = 3

	seriesReconcileNumbers wire.Number = 3
)

// ResultBound returns how many bytes the result of an encoded operation has at most,
// whatever the state is. It is at most raftlog.MaxResultBytes for every operation that
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

// numbersBound is above the numbers that keys are answered with, and one that a refusal
// has.
func numbersBound(payload []byte, keys wire.Number) int {
	bound := numberBound
	for num := range wire.Fields(payload) {
		if num == keys {
			bound += numberBound
		}
	}
	return bound
}
