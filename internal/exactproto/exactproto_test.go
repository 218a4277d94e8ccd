package exactproto

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

func TestUnknownFieldsAtAnyDepth(t *testing.T) {
	table := func(change func(*raftlogv1.RoleTable)) []byte {
		m := &raftlogv1.RoleTable{
			Roles:  []*raftlogv1.Role{{Name: "a", Grants: []*raftlogv1.Grant{{Database: "db"}, {}}}},
			Limits: []*raftlogv1.CallerLimit{{InFlight: -1}},
		}
		change(m)
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	unknown := func(m proto.Message) { m.ProtoReflect().SetUnknown([]byte{0xfa, 0x06, 0}) } // Field 111.
	for name, tt := range map[string]struct {
		data []byte
		want error
		in   string
	}{
		"none":       {table(func(*raftlogv1.RoleTable) {}), nil, ""},
		"at the top": {table(func(m *raftlogv1.RoleTable) { unknown(m) }), ErrUnknownField, "RoleTable"},
		"deep":       {table(func(m *raftlogv1.RoleTable) { unknown(m.Roles[0].Grants[1]) }), ErrUnknownField, "Grant"},
	} {
		if err := Unmarshal(tt.data, new(raftlogv1.RoleTable)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		m := new(raftlogv1.RoleTable)
		if err := proto.Unmarshal(tt.data, m); err != nil {
			t.Fatal(err)
		}
		if err := Check(m); !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), "number 111 of "+tt.in) {
			t.Errorf("%s: %v, want %v in %s", name, err, tt.want, tt.in)
		}
	}
	if err := Unmarshal([]byte{0xff}, new(raftlogv1.RoleTable)); err == nil || errors.Is(err, ErrUnknownField) {
		t.Errorf("no message: %v", err)
	}
}
