// Package exactproto finds fields that this program does not know: snapshots, backups and requests
// must not be read in part. Such a field is of a newer program.
package exactproto

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ErrUnknownField is the error for a field that this program does not know.
var ErrUnknownField = errors.New("a field that this program does not know")

// Unmarshal decodes a message as the generated code encodes it. The error is
// ErrUnknownField, at whatever depth the field is, or that of bytes that are no message.
// Without the unknown fields the message is shorter: to compare sizes takes a fraction of
// the time of a walk through all messages in it.
func Unmarshal(data []byte, m proto.Message) error {
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return err
	}
	if proto.Size(m) != len(data) {
		return ErrUnknownField
	}
	return nil
}

// Check returns an ErrUnknownField, which names the field, if m has one at whatever depth. It is for messages
// that anybody encoded, whose sizes say nothing.
func Check(m proto.Message) error {
	in := unknownIn(m.ProtoReflect())
	if in == nil {
		return nil
	}
	num, _, _ := protowire.ConsumeTag(in.GetUnknown())
	return Unknown(num, in.Descriptor())
}

// Unknown is the error for the field of this number.
func Unknown(num protowire.Number, of protoreflect.MessageDescriptor) error {
	return fmt.Errorf("%w: number %d of %s", ErrUnknownField, num, of.Name())
}

// unknownIn returns the message in m, or m, that has unknown fields; nil if none has.
func unknownIn(m protoreflect.Message) (found protoreflect.Message) {
	if len(m.GetUnknown()) > 0 {
		return m
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Message() == nil || f.IsMap() || !m.Has(f) {
			continue
		}
		if !f.IsList() {
			if found := unknownIn(m.Get(f).Message()); found != nil {
				return found
			}
			continue
		}
		for list, i := m.Get(f).List(), 0; i < list.Len(); i++ {
			if found := unknownIn(list.Get(i).Message()); found != nil {
				return found
			}
		}
	}
	return nil
}
