package compat_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/idnode/idnode/client/idnodev1"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/compat"
)

// TestMessagesKept: the rules of buf's category WIRE_JSON, and stricter, as nothing is taken away.
func TestMessagesKept(t *testing.T) {
	for file, descriptors := range map[string][]protoreflect.FileDescriptor{
		"api": {
			idnodev1.File_idnode_v1_admin_proto, idnodev1.File_idnode_v1_cluster_proto, idnodev1.File_idnode_v1_consistency_proto,
			idnodev1.File_idnode_v1_ids_proto, idnodev1.File_idnode_v1_series_proto, idnodev1.File_idnode_v1_snowflake_proto,
		},
		"members": {peerv1.File_peer_v1_joining_proto, peerv1.File_peer_v1_members_proto},
		"log": {
			raftlogv1.File_raftlog_v1_backup_proto, raftlogv1.File_raftlog_v1_entry_proto, raftlogv1.File_raftlog_v1_operation_proto,
			raftlogv1.File_raftlog_v1_series_proto, raftlogv1.File_raftlog_v1_snowflake_proto,
		},
	} {
		var lines listing
		for _, d := range descriptors {
			lines.file(d)
		}
		compat.Names(t, compat.Wire, file, lines)
	}
}

// listing has a line for each field, value and method.
type listing []string

func (l *listing) add(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

func (l *listing) file(d protoreflect.FileDescriptor) {
	l.messages(d.Messages())
	l.enums(d.Enums())
	for i := range d.Services().Len() {
		methods := d.Services().Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			l.add("method %s(%s stream=%t) %s stream=%t", m.FullName(),
				m.Input().FullName(), m.IsStreamingClient(), m.Output().FullName(), m.IsStreamingServer())
		}
	}
}

func (l *listing) messages(all protoreflect.MessageDescriptors) {
	for i := range all.Len() {
		m := all.Get(i)
		l.add("message %s", m.FullName())
		for j := range m.Fields().Len() {
			l.field(m.Fields().Get(j))
		}
		l.messages(m.Messages())
		l.enums(m.Enums())
	}
}

func (l *listing) field(f protoreflect.FieldDescriptor) {
	kind, choice := f.Kind().String(), ""
	switch {
	case f.Message() != nil:
		kind = string(f.Message().FullName())
	case f.Enum() != nil:
		kind = string(f.Enum().FullName())
	}
	if f.ContainingOneof() != nil {
		choice = " oneof " + string(f.ContainingOneof().Name())
	}
	l.add("field %s = %d json %s %s %s presence=%t%s", f.FullName(), f.Number(), f.JSONName(), f.Cardinality(), kind, f.HasPresence(), choice)
}

func (l *listing) enums(all protoreflect.EnumDescriptors) {
	for i := range all.Len() {
		values := all.Get(i).Values()
		for j := range values.Len() {
			l.add("value %s = %d", values.Get(j).FullName(), values.Get(j).Number())
		}
	}
}
