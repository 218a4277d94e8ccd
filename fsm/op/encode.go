package op

import (
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Envelope is what an operation says beside what it does.
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

// Encode returns the operation that does what the payload says. The error is that of
// text that is not UTF-8.
func (e Envelope) Encode(payload proto.Message) ([]byte, error) {
	if !utf8.ValidString(e.Database) || e.Principal != nil && !utf8.ValidString(*e.Principal) {
		return nil, errors.New("the database or the principal is not UTF-8")
	}
	b := e.appendPrincipal(e.begin(proto.Size(payload)))
	return appendMessage(b, payloadFields, payload)
}

// EncodeIdentityNext returns the operation that takes count values of an identity. Name
// and separator are folded. The principal comes behind the payload, where it always was.
func (e Envelope) EncodeIdentityNext(name string, count int64, separator string) []byte {
	size := sizeText(name) + sizeNumber(uint64(count)) + sizeText(separator)
	b := e.begin(size)
	b = protowire.AppendTag(b, protowire.Number(KindIdentityNext), protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = appendText(b, payloadName, name)
	b = appendNumber(b, nextCount, uint64(count))
	b = appendText(b, nextSeparator, separator)
	return e.appendPrincipal(b)
}

// begin returns the encoding of database and request key, with room for the principal
// and a payload of the given size.
func (e Envelope) begin(size int) []byte {
	size += sizeText(e.Database) + tagsRoom
	if e.Request != nil {
		size += requestRoom
	}
	if e.Principal != nil {
		size += tagsRoom + len(*e.Principal)
	}
	b := appendText(make([]byte, 0, size), fieldDatabase, e.Database)
	if e.Request != nil {
		b = AppendRequest(b, *e.Request)
	}
	return b
}

// tagsRoom is as much as the tag and the size of a field take at most, and requestRoom as
// a request key.
const (
	tagsRoom    = 7
	requestRoom = 51
)

func (e Envelope) appendPrincipal(b []byte) []byte {
	if e.Principal == nil {
		return b
	}
	b = protowire.AppendTag(b, fieldPrincipal, protowire.BytesType)
	return protowire.AppendString(b, *e.Principal)
}
