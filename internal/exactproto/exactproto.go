// Package exactproto decodes messages that must not be read in part: in snapshots and in
// backups a field that this program does not know is of a newer one.
package exactproto

import (
	"errors"

	"google.golang.org/protobuf/proto"
)

// ErrUnknownField is Unmarshal's error for a field that this program does not know.
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
