package op

import "google.golang.org/protobuf/encoding/protowire"

const (
	// plainBound is above the words of a refusal without what they quote, above a member
	// with the longest addresses, and above the pieces of the largest block.
	plainBound = 2 << 10
	// quotedBound is above what a byte of a name becomes where words quote it.
	quotedBound = 4
	// numberBound is above a number of a series with its key, text, scope, label and
	// reason.
	numberBound = 832

	seriesTakeKeys protowire.Number = 5
	seriesEndKeys  protowire.Number = 3

	seriesReconcileNumbers protowire.Number = 3
)

// ResultBound returns how many bytes the result of an encoded operation has at most,
// whatever the state is. It is at most raftlog.MaxResultBytes for every operation that
// keeps within the limits of the API.
func ResultBound(operation []byte) int {
	bound := plainBound + quotedBound*len(operation)
	for rest := operation; len(rest) > 0; {
		num, _, _, payload, n := consumeField(rest)
		if n < 0 {
			break // It is refused.
		}
		rest = rest[n:]
		switch Kind(num) {
		case KindSeriesTake:
			bound += numbersBound(payload, seriesTakeKeys)
		case KindSeriesEnd:
			bound += numbersBound(payload, seriesEndKeys)
		case KindSeriesReconcile:
			bound += numbersBound(payload, seriesReconcileNumbers)
		}
	}
	return bound
}

// numbersBound is above the numbers that keys are answered with, and one that a refusal
// has.
func numbersBound(payload []byte, keys protowire.Number) int {
	bound := numberBound
	for len(payload) > 0 {
		num, _, _, _, n := consumeField(payload)
		if n < 0 {
			break
		}
		if num == keys {
			bound += numberBound
		}
		payload = payload[n:]
	}
	return bound
}
