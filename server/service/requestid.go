package service

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/server/apierror"
)

// MaxRequestIDBytes is the length of the longest request id.
const MaxRequestIDBytes = 64

// fingerprint hashes the use case and every field of a request as the caller
// wrote it, so that a request id cannot be used for another request unnoticed.
//
// Invariant: two nodes compute the same fingerprint for the same call. So neither the serving
// node's tag nor a fresh token nor the marks of a retry belong in it. The encodings are part of the
// replicated state: they never change.
type fingerprint struct {
	hashed []byte
}

func newFingerprint(useCase string) fingerprint {
	f := fingerprint{hashed: make([]byte, 0, 192)} // more than most requests have
	return f.text(useCase)
}

// text adds a string, preceded by its length so that no two lists of fields
// look alike.
func (f fingerprint) text(s string) fingerprint {
	f = f.number(int64(len(s)))
	f.hashed = append(f.hashed, s...)
	return f
}

func (f fingerprint) number(n int64) fingerprint {
	f.hashed = binary.BigEndian.AppendUint64(f.hashed, uint64(n))
	return f
}

func (f fingerprint) flag(set bool) fingerprint {
	if set {
		return f.number(1)
	}
	return f.number(0)
}

// optional adds a number that may be missing.
func (f fingerprint) optional(n *int64) fingerprint {
	if n == nil {
		return f.flag(false)
	}
	return f.flag(true).number(*n)
}

// time adds a valid time that may be missing.
func (f fingerprint) time(t *timestamppb.Timestamp) fingerprint {
	if t == nil {
		return f.flag(false)
	}
	return f.flag(true).number(t.AsTime().UnixNano())
}

func (f fingerprint) sum() uint64 {
	sum := sha256.Sum256(f.hashed)
	return binary.BigEndian.Uint64(sum[:])
}

// blockPrefix begins the request id of values that callers of a client take in one call, as in
// block.HEX.3 for three values. Each of those callers has that id, so no other call may use it:
// otherwise a caller could take one value for all.
const blockPrefix = "block."

// ofBlock reports whether a request id is that of a block of so many values.
func ofBlock(id string, values int64) bool {
	parts := strings.Split(id, ".")
	return len(parts) == 3 && parts[2] == strconv.FormatInt(values, 10)
}

// accept checks the form of a call's request id, and returns the call's key in the state, or nil
// without a request id. values is the count of identity values that the call takes. database is folded.
// It is called where the call arrives: a first try that is held up later must not look newer than its
// retry.
func (b *base) accept(id *idnodev1.RequestId, values int64, database string, f func() fingerprint) (*op.RequestKey, error) {
	switch {
	case id == nil:
		return nil, nil
	case strings.HasPrefix(id.GetId(), blockPrefix) && (values == 0 || !ofBlock(id.GetId(), values)):
		return nil, apierror.Invalid(apierror.ReasonInvalidRequestID, "request_id",
			"request ids that begin with %s are reserved for values that callers of one client take together", blockPrefix)
	case id.GetId() == "":
		return nil, apierror.Invalid(apierror.ReasonInvalidRequestID, "request_id", "the request id is empty")
	case len(id.GetId()) > MaxRequestIDBytes:
		return nil, apierror.Invalid(apierror.ReasonInvalidRequestID, "request_id",
			"the request id has %d bytes, more than %d", len(id.GetId()), MaxRequestIDBytes)
	case id.RetrySince == nil && !b.caughtUp():
		// Applied request ids may be forgotten already: the state would refuse a call that was
		// never tried. Waiting would make a first try look newer.
		return nil, apierror.Behind()
	}
	key := &op.RequestKey{
		Key: hashRequestID(database, id.GetId()), Fingerprint: f().sum(), Retry: id.RetrySince != nil, Since: id.GetRetrySince(),
	}
	if !key.Retry {
		key.Since = b.state.AppliedIndex()
	}
	return key, nil
}

// hashRequestID returns 16 bytes of SHA-256 over the database, preceded by its
// length in one byte, and the id.
func hashRequestID(database, id string) [16]byte {
	var space [1 + docid.MaxDatabaseBytes + MaxRequestIDBytes]byte
	b := append(space[:0], byte(len(database)))
	b = append(b, database...)
	b = append(b, id...)
	sum := sha256.Sum256(b)
	return [16]byte(sum[:])
}
