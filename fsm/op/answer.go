package op

import (
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// CodecError is the error of an operation that cannot be encoded, or of bytes that are no
// result.
type CodecError struct {
	what string
	err  error
}

func (e *CodecError) Error() string { return e.what + ": " + e.err.Error() }

func (e *CodecError) Unwrap() error { return e.err }

// DecodeResult returns what an applied operation was answered. The error is a
// *RefusedError, or an *outcome.Error around a *CodecError for bytes that are no result:
// what the operation did is unknown.
func DecodeResult(result []byte) (*raftlogv1.Result, error) {
	r := new(raftlogv1.Result)
	if err := proto.Unmarshal(result, r); err != nil {
		return nil, notDecoded("decode a result", err)
	}
	if refusal := r.GetRefusal(); refusal != nil {
		return nil, &RefusedError{Refusal: refusal}
	}
	return r, nil
}

func notDecoded(what string, err error) error {
	return outcome.NewUnknown(outcome.Unspecified, &CodecError{what, err})
}
