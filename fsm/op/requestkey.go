package op

import "github.com/idnode/idnode/internal/wire"

// RequestKey is a raftlog.v1.RequestKey: it makes an operation count once.
type RequestKey struct {
	// Key is a hash of database and request id.
	Key [16]byte
	// Fingerprint is the fingerprint of the exact request.
	Fingerprint uint64
	// Retry means that the call may have been made before.
	Retry bool
	// Since is the newest log index that was seen before the first try; 0 for none.
	Since uint64
}

// Field numbers of raftlog.v1.RequestKey.
const (
	requestKey         wire.Number = 1
	requestFingerprint wire.Number = 2
	requestRetry       wire.Number = 3
	requestSince       wire.Number = 4
)

// decodeRequestKey decodes a request key; a request key without a key is malformed.
func decodeRequestKey(data []byte) (k RequestKey, err error) {
	size := 0
	r := wire.NewReader(data)
	for r.More() {
		switch r.Next() {
		case requestKey:
			key := r.Bytes()
			size = len(key)
			copy(k.Key[:], key)
		case requestFingerprint:
			k.Fingerprint = r.Fixed64()
		case requestRetry:
			k.Retry = r.Bool()
		case requestSince:
			k.Since = r.Varint()
		default:
			r.Unexpected()
		}
	}
	if r.Err() != nil || size != len(k.Key) {
		return k, ErrMalformed
	}
	return k, nil
}

func (k *RequestKey) append(operation []byte) []byte {
	var space [64]byte
	b := wire.AppendBytes(space[:0], requestKey, k.Key[:])
	b = wire.AppendFixed64(b, requestFingerprint, k.Fingerprint)
	if k.Retry {
		b = wire.AppendVarint(b, requestRetry, 1)
	}
	b = wire.AppendVarint(b, requestSince, k.Since)
	return wire.AppendBytes(operation, fieldRequest, b)
}
