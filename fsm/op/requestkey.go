package op

import "google.golang.org/protobuf/encoding/protowire"

// RequestKey is a raftlog.v1.RequestKey: it makes an operation count once.
type RequestKey struct {
	// Key is a hash of database and request id.
	Key [16]byte
	// Fingerprint is one of the exact request.
	Fingerprint uint64
	// Retry means that the call may have been made before.
	Retry bool
	// Since is the newest log index that was seen before the first try; 0 for none.
	Since uint64
}

// Field numbers of raftlog.v1.RequestKey.
const (
	requestKey         protowire.Number = 1
	requestFingerprint protowire.Number = 2
	requestRetry       protowire.Number = 3
	requestSince       protowire.Number = 4
)

// decodeRequestKey decodes a request key; one without key is malformed.
func decodeRequestKey(data []byte) (k RequestKey, err error) {
	size := 0
	err = eachField(data, func(num protowire.Number, f field) bool {
		switch num {
		case requestKey:
			size = copy(k.Key[:], f.bytes)
			return f.typ == protowire.BytesType && len(f.bytes) == len(k.Key)
		case requestFingerprint:
			k.Fingerprint = f.number
			return f.typ == protowire.Fixed64Type
		case requestRetry:
			k.Retry = f.number != 0
			return f.typ == protowire.VarintType
		case requestSince:
			k.Since = f.number
			return f.typ == protowire.VarintType
		}
		return false
	})
	if err == nil && size == 0 {
		err = ErrMalformed
	}
	return k, err
}

// AppendRequest appends a request key to an encoded operation that has none.
func AppendRequest(operation []byte, k RequestKey) []byte {
	var space [64]byte
	b := protowire.AppendTag(space[:0], requestKey, protowire.BytesType)
	b = protowire.AppendBytes(b, k.Key[:])
	b = appendFixed64(b, requestFingerprint, k.Fingerprint)
	if k.Retry {
		b = appendNumber(b, requestRetry, 1)
	}
	b = appendNumber(b, requestSince, k.Since)
	operation = protowire.AppendTag(operation, fieldRequest, protowire.BytesType)
	return protowire.AppendBytes(operation, b)
}
