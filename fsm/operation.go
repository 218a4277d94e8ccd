package fsm

import (
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/docid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Field numbers of raftlog.v1.Operation.
const (
	opDatabase       protowire.Number = 1
	opRequest        protowire.Number = 2
	opPrincipal      protowire.Number = 3
	opIdentityNext   protowire.Number = 10
	opIdentitySeed   protowire.Number = 11
	opIdentityDelete protowire.Number = 12
	opHiLoNext       protowire.Number = 13
	opHiLoReturn     protowire.Number = 14
	opHiLoSet        protowire.Number = 15
	opClaim          protowire.Number = 16
	opRelease        protowire.Number = 17
	opSettingSet     protowire.Number = 18
	opBootstrap      protowire.Number = 19
	opMemberJoin     protowire.Number = 20
	opMemberAnnounce protowire.Number = 21
	opMemberPromote  protowire.Number = 22
	opMemberRemove   protowire.Number = 23
	opFormatRaise    protowire.Number = 24
	opEtagRaise      protowire.Number = 25
	opEtagCleanStop  protowire.Number = 26
	opMerge          protowire.Number = 27
	opMergeCluster   protowire.Number = 28
	opRolesSet       protowire.Number = 30
	opMemberInvite   protowire.Number = 31
)

// operation is a raftlog.v1.Operation, decoded by hand: the generated code takes
// six allocations for the most frequent one, this none. payload is the encoded
// message of the kind; its byte slices are views into the entry.
type operation struct {
	database []byte
	keyed    bool // it has a request key
	request  requestKey
	// named means that it has a principal, possibly the anonymous one.
	named     bool
	principal []byte
	kind      protowire.Number
	payload   []byte
}

// requestKey is a decoded raftlog.v1.RequestKey.
type requestKey struct {
	key         [16]byte
	fingerprint uint64
	retry       bool
	since       uint64
	before      uint64 // fingerprint_before; 0 for none
}

// errOperation is the error of an operation that cannot be decoded. The service builds
// operations, so the text is for developers only.
var errOperation = errors.New("malformed operation")

// decodeOperation decodes the envelope of an operation. Unknown fields are refused: a
// node that knows them would act differently.
func decodeOperation(data []byte) (o operation, err error) {
	err = eachField(data, func(num protowire.Number, f field) bool {
		switch num {
		case opDatabase:
			o.database = f.bytes
			return f.typ == protowire.BytesType
		case opRequest:
			again := o.keyed
			o.keyed = true
			o.request, err = decodeRequestKey(f.bytes)
			return f.typ == protowire.BytesType && err == nil && !again
		case opPrincipal:
			again := o.named
			o.named, o.principal = true, f.bytes
			return f.typ == protowire.BytesType && !again
		}
		known := isKind(num) && o.kind == 0
		o.kind, o.payload = num, f.bytes
		return known && f.typ == protowire.BytesType
	})
	if err == nil && o.kind == 0 {
		err = errOperation
	}
	return o, err
}

// isKind reports whether a field is one of what an operation may do.
func isKind(num protowire.Number) bool {
	return num >= opIdentityNext && num <= opMergeCluster || num == opRolesSet || num == opMemberInvite
}

// decodeRequestKey decodes a raftlog.v1.RequestKey.
func decodeRequestKey(data []byte) (requestKey, error) {
	var k requestKey
	size := 0
	err := eachField(data, func(num protowire.Number, f field) bool {
		switch num {
		case 1:
			size = copy(k.key[:], f.bytes)
			return f.typ == protowire.BytesType && len(f.bytes) == len(k.key)
		case 2:
			k.fingerprint = f.number
			return f.typ == protowire.Fixed64Type
		case 3:
			k.retry = f.number != 0
			return f.typ == protowire.VarintType
		case 4:
			k.since = f.number
			return f.typ == protowire.VarintType
		case 5:
			k.before = f.number
			return f.typ == protowire.Fixed64Type
		}
		return false
	})
	if err == nil && size == 0 {
		err = errOperation
	}
	return k, err
}

// field is the value of one field: number or bytes, by its type.
type field struct {
	typ    protowire.Type
	number uint64
	bytes  []byte
}

// eachField calls accept for each field of an encoded message until it returns
// false, which makes the message malformed.
func eachField(data []byte, accept func(protowire.Number, field) bool) error {
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errOperation
		}
		data = data[n:]
		f := field{typ: typ}
		switch typ {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(data)
		case protowire.Fixed64Type:
			f.number, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(data)
		default:
			return errOperation
		}
		if n < 0 || !accept(num, f) {
			return errOperation
		}
		data = data[n:]
	}
	return nil
}

// identityNextOp is a decoded raftlog.v1.IdentityNext.
type identityNextOp struct {
	name      []byte
	count     int64
	separator []byte
}

func decodeIdentityNext(data []byte) (o identityNextOp, err error) {
	err = eachField(data, func(num protowire.Number, f field) bool {
		switch num {
		case 1:
			o.name = f.bytes
			return f.typ == protowire.BytesType
		case 2:
			o.count = int64(f.number)
			return f.typ == protowire.VarintType
		case 3:
			o.separator = f.bytes
			return f.typ == protowire.BytesType
		}
		return false
	})
	return o, err
}

// decodePayload decodes the payload of an operation that is not frequent enough
// for code by hand.
func decodePayload(o *operation, m proto.Message) *refusal {
	if err := proto.Unmarshal(o.payload, m); err != nil || len(m.ProtoReflect().GetUnknown()) > 0 {
		return invalid("", "%v", errOperation)
	}
	return nil
}

// checkDatabase refuses an operation without a proper database.
func checkDatabase(o *operation) *refusal {
	return checkText("database", o.database, docid.MaxDatabaseBytes)
}

// checkText refuses a name that is empty, too long or no UTF-8. The service has
// checked much more; this is what the state itself relies on.
func checkText[T ~string | ~[]byte](field string, text T, most int) *refusal {
	switch {
	case len(text) == 0:
		return invalid(field, "is empty")
	case len(text) > most:
		return invalid(field, "has %d bytes, at most %d are allowed", len(text), most)
	case !validUTF8(text):
		return invalid(field, "is not valid UTF-8")
	}
	return nil
}

func validUTF8[T ~string | ~[]byte](text T) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return utf8.ValidString(string(text))
		}
	}
	return true
}

// invalid is the refusal of a malformed operation.
func invalid(field, format string, args ...any) *refusal {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, field, format, args...)
}
