package op

import (
	"context"
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/internal/wire"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Envelope holds the fields of an operation beside its payload.
type Envelope struct {
	// Database is folded; empty for operations on the cluster.
	Database string
	// Request is the request key; nil for none.
	Request *RequestKey
	// Principal is the caller's name; nil if the operation does not name its caller.
	Principal *string
}

// payloadFields are the fields of raftlog.v1.Operation that hold a payload.
var payloadFields = fieldsByType(&raftlogv1.Operation{})

// Encode returns the operation with the payload. The error is an *outcome.Error around a
// *CodecError: text is not UTF-8.
func (e Envelope) Encode(payload proto.Message) ([]byte, error) {
	if !utf8.ValidString(e.Database) || e.Principal != nil && !utf8.ValidString(*e.Principal) {
		return nil, notEncoded(errors.New("the database or the principal is not UTF-8"))
	}
	b, err := appendMessage(e.begin(proto.Size(payload)), payloadFields, payload)
	if err != nil {
		return nil, notEncoded(err)
	}
	return b, nil
}

// Proposer commits an encoded operation through the replicated log and returns its encoded
// result. Its errors are *outcome.Error.
type Proposer interface {
	Propose(ctx context.Context, operation []byte) ([]byte, error)
}

// Propose commits the operation with the payload, and returns its result. The error is the log's or
// the codec's, or a *RefusedError.
func (e Envelope) Propose(ctx context.Context, log Proposer, payload proto.Message) (*raftlogv1.Result, error) {
	operation, err := e.Encode(payload)
	if err != nil {
		return nil, err
	}
	answer, err := log.Propose(ctx, operation)
	if err != nil {
		return nil, err
	}
	return DecodeResult(answer)
}

func notEncoded(err error) error {
	return outcome.NewNotApplied(outcome.Invalid, &CodecError{"encode an operation", err})
}

// EncodeIdentityNext returns the operation that takes count values of an identity. Name
// and separator are folded.
func (e Envelope) EncodeIdentityNext(name string, count int64, separator string) []byte {
	size := wire.SizeBytes(payloadName, name) + wire.SizeVarint(nextCount, uint64(count)) + wire.SizeBytes(nextSeparator, separator)
	b := wire.AppendLength(e.begin(size), wire.Number(KindIdentityNext), size)
	b = wire.AppendBytes(b, payloadName, name)
	b = wire.AppendVarint(b, nextCount, uint64(count))
	return wire.AppendBytes(b, nextSeparator, separator)
}

// begin returns the encoding of the envelope, with room for a payload of the given size.
func (e Envelope) begin(size int) []byte {
	size += wire.SizeBytes(fieldDatabase, e.Database) + tagsRoom
	if e.Request != nil {
		size += requestRoom
	}
	if e.Principal != nil {
		size += tagsRoom + len(*e.Principal)
	}
	b := wire.AppendBytes(make([]byte, 0, size), fieldDatabase, e.Database)
	if e.Request != nil {
		b = e.Request.append(b)
	}
	if e.Principal != nil {
		b = append(wire.AppendLength(b, fieldPrincipal, len(*e.Principal)), *e.Principal...)
	}
	return b
}

// tagsRoom is as much as the tag and the size of a field take at most, and requestRoom as
// a request key.
const (
	tagsRoom    = 7
	requestRoom = 51
)

// fieldsByType returns the numbers of those fields that hold a message, by its type.
func fieldsByType(of proto.Message) map[protoreflect.FullName]wire.Number {
	numbers, fields := map[protoreflect.FullName]wire.Number{}, of.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if m := fields.Get(i).Message(); m != nil {
			numbers[m.FullName()] = fields.Get(i).Number()
		}
	}
	return numbers
}

// appendMessage appends a message as the field for its type. It is deterministic, because
// results are part of the state. The error is that of text that is not UTF-8.
func appendMessage(dst []byte, fields map[protoreflect.FullName]wire.Number, m proto.Message) ([]byte, error) {
	num, ok := fields[m.ProtoReflect().Descriptor().FullName()]
	if !ok {
		panic("op: no field holds a " + m.ProtoReflect().Descriptor().FullName())
	}
	dst = wire.AppendLength(dst, num, proto.Size(m))
	return proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(dst, m)
}
