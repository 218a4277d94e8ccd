package op

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/idnode/idnode/internal/wire"
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
