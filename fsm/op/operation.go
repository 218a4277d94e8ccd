package op

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/exactproto"
	"github.com/idnode/idnode/internal/wire"
	"github.com/idnode/idnode/series"
)

// Kind is the kind of an operation: its payload's field number in raftlog.v1.Operation.
type Kind wire.Number

// The kinds of operations, each with the message of that name as its payload.
const (
	KindIdentityNext    Kind = 10
	KindIdentitySeed    Kind = 11
	KindIdentityDelete  Kind = 12
	KindHiLoNext        Kind = 13
	KindHiLoReturn      Kind = 14
	KindHiLoSet         Kind = 15
	KindClaim           Kind = 16
	KindRelease         Kind = 17
	KindSettingSet      Kind = 18
	KindBootstrap       Kind = 19
	KindMemberAdd       Kind = 20
	KindMemberAnnounce  Kind = 21
	KindMemberPromote   Kind = 22
	KindMemberRemove    Kind = 23
	KindFormatRaise     Kind = 24
	KindEtagRaise       Kind = 25
	KindEtagCleanStop   Kind = 26
	KindMerge           Kind = 27
	KindMergeCluster    Kind = 28
	KindRolesSet        Kind = 30
	KindJoinTokenCreate Kind = 31
	KindSeriesDefine    Kind = 32
	KindSeriesTake      Kind = 33
	KindSeriesEnd       Kind = 34
	KindSeriesClose     Kind = 35
	KindSeriesResume    Kind = 36
	KindSeriesImport    Kind = 37
	KindSeriesReconcile Kind = 38
	KindSeriesDelete    Kind = 39
	KindPoolDefine      Kind = 40
	KindWorkerAcquire   Kind = 41
	KindWorkerRenew     Kind = 42
	KindWorkerRelease   Kind = 43
	KindWorkerEvict     Kind = 44
	KindDatabaseDelete  Kind = 45
	KindWatcherSet      Kind = 46
	KindSeriesAllot     Kind = 47
)

func (k Kind) known() bool {
	return k >= KindIdentityNext && k <= KindMergeCluster || k >= KindRolesSet && k <= KindSeriesAllot
}

// The other field numbers of raftlog.v1.Operation.
const (
	fieldDatabase  wire.Number = 1
	fieldRequest   wire.Number = 2
	fieldPrincipal wire.Number = 3
)

// Field numbers of payloads that are decoded by hand, if only in part.
const (
	payloadName          wire.Number = 1 // of each that has a name, tag or id
	nextCount            wire.Number = 2
	nextSeparator        wire.Number = 3
	identitySeedForce    wire.Number = 3
	identityDeleteForget wire.Number = 2
	poolDefineForget     wire.Number = 4
	seriesEndState       wire.Number = 2
	seriesTakeNumber     wire.Number = 10
)

// ErrMalformed is the error of an operation, or of a payload, that cannot be decoded.
var ErrMalformed = errors.New("malformed operation")

// Operation is a decoded raftlog.v1.Operation. Its byte slices are views into the
// encoded one.
type Operation struct {
	// Database is folded; empty for operations on the cluster.
	Database []byte
	// Keyed means that it has the request key Request.
	Keyed   bool
	Request RequestKey
	// Named means that it has a principal, possibly the anonymous one.
	HasPrincipal bool
	Principal    []byte
	// Kind is the kind of the payload, and Payload the encoded message.
	Kind    Kind
	Payload []byte
}

// Decode decodes an operation without its payload. Unknown fields are refused: a node with a newer
// release would act on them. The error is ErrMalformed.
func Decode(data []byte) (o Operation, err error) {
	r := wire.NewReader(data)
	for r.More() {
		switch num := r.Next(); {
		case num == fieldDatabase:
			o.Database = r.Bytes()
		case num == fieldRequest:
			o.Keyed = true
			if o.Request, err = decodeRequestKey(r.Message()); err != nil {
				return o, err
			}
		case num == fieldPrincipal:
			o.HasPrincipal, o.Principal = true, r.Message()
		case Kind(num).known() && o.Kind == 0:
			o.Kind, o.Payload = Kind(num), r.Message()
		default:
			r.Unexpected()
		}
	}
	if r.Err() != nil || o.Kind == 0 {
		return o, ErrMalformed
	}
	return o, nil
}

// Name returns the name in the payload: in all payloads with a name it is the first field. Of a
// malformed payload it returns the name as far as it is readable.
func (o *Operation) Name() (name []byte) {
	for num, v := range wire.Fields(o.Payload) {
		if num == payloadName {
			name = v.Bytes
		}
	}
	return name
}

// Forced reports whether an IdentitySeed is by force, or an IdentityDelete or a PoolDefine is to
// forget. The state asks for the right to force then.
func (o *Operation) Forced() bool {
	var flag wire.Number
	switch o.Kind {
	case KindIdentitySeed:
		flag = identitySeedForce
	case KindIdentityDelete:
		flag = identityDeleteForget
	case KindPoolDefine:
		flag = poolDefineForget
	default:
		return false
	}
	return o.isSet(flag)
}

// isSet reports whether a number or a flag of the payload is not 0.
func (o *Operation) isSet(field wire.Number) bool {
	for num, v := range wire.Fields(o.Payload) {
		if num == field && v.Varint != 0 {
			return true
		}
	}
	return false
}

// Confirms reports whether a SeriesEnd confirms numbers.
func (o *Operation) Confirms() (confirms bool) {
	if o.Kind != KindSeriesEnd {
		return false
	}
	for num, v := range wire.Fields(o.Payload) {
		if num == seriesEndState {
			confirms = v.Varint == uint64(series.Confirmed)
		}
	}
	return confirms
}

// Enters reports whether a SeriesTake enters a number that a document has already.
func (o *Operation) Enters() bool { return o.Kind == KindSeriesTake && o.isSet(seriesTakeNumber) }

// DecodePayload decodes the payload into the message of the operation's kind. Unknown fields
// are refused at any depth, but those of a member, which may run a newer program. The error is
// ErrMalformed.
func (o *Operation) DecodePayload(m proto.Message) error {
	decode := exactproto.Unmarshal
	if o.Kind == KindBootstrap || o.Kind == KindMemberAdd || o.Kind == KindMemberAnnounce {
		decode = proto.Unmarshal
	}
	if err := decode(o.Payload, m); err != nil || len(m.ProtoReflect().GetUnknown()) > 0 {
		return ErrMalformed
	}
	return nil
}

// IdentityNext is a decoded raftlog.v1.IdentityNext.
type IdentityNext struct {
	Name      []byte
	Count     int64
	Separator []byte
}

// DecodeIdentityNext decodes the payload of that kind. The error is ErrMalformed.
func (o *Operation) DecodeIdentityNext() (next IdentityNext, err error) {
	r := wire.NewReader(o.Payload)
	for r.More() {
		switch r.Next() {
		case payloadName:
			next.Name = r.Bytes()
		case nextCount:
			next.Count = int64(r.Varint())
		case nextSeparator:
			next.Separator = r.Bytes()
		default:
			r.Unexpected()
		}
	}
	if r.Err() != nil {
		return next, ErrMalformed
	}
	return next, nil
}
