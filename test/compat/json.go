package compat

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Turns is how often Fill is called so that each value of an enum in each part of a choice has had its turn.
const (
	Turns   = values * choices
	values  = 16
	choices = 8
)

// Fill sets every field of a message and of the messages in it, but for one inside its own kind.
func Fill(t testing.TB, m protoreflect.Message, turn int, outer ...protoreflect.FullName) {
	t.Helper()
	d := m.Descriptor()
	if slices.Contains(outer, d.FullName()) {
		return
	}
	outer = append(slices.Clone(outer), d.FullName())
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if choice := f.ContainingOneof(); choice != nil {
			if all := choice.Fields(); all.Len() > choices {
				t.Fatalf("too few turns for %s", choice.FullName())
			} else if all.Get(turn/values%all.Len()) != f {
				continue
			}
		}
		switch {
		case f.IsMap():
			m.Mutable(f).Map().Set(scalar(t, f.MapKey(), turn).MapKey(), scalar(t, f.MapValue(), turn))
		case f.IsList() && f.Message() != nil:
			Fill(t, m.Mutable(f).List().AppendMutable().Message(), turn, outer...)
		case f.IsList():
			m.Mutable(f).List().Append(scalar(t, f, turn))
		case f.Message() != nil:
			Fill(t, m.Mutable(f).Message(), turn, outer...)
		default:
			m.Set(f, scalar(t, f, turn))
		}
	}
}

func scalar(t testing.TB, f protoreflect.FieldDescriptor, turn int) protoreflect.Value {
	t.Helper()
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		all := f.Enum().Values()
		if all.Len() > values {
			t.Fatalf("too few turns for %s", f.Enum().FullName())
		}
		return protoreflect.ValueOfEnum(all.Get(turn % all.Len()).Number())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("text")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{3, 0xfb, 0xff, 1}) // Alphabets of base64 differ here, and in the end.
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(2.5)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(7)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(7)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(7)
	}
	t.Fatalf("no value of a field that is %s", f.Kind())
	return protoreflect.Value{}
}

// JSON has a line for each value in a JSON text: its path and, unless only the type is asked for, the value.
func JSON(t testing.TB, path, text string, types bool) (lines []string) {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Errorf("%s: %v: %s", path, err, text)
	}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			lines = append(lines, path+" object")
			for key, inner := range v {
				walk(path+"."+key, inner)
			}
		case []any:
			lines = append(lines, path+" list")
			for _, inner := range v {
				walk(path+"[]", inner)
			}
		default:
			form := "%s %#v"
			if types {
				form = "%s %T"
			}
			lines = append(lines, fmt.Sprintf(form, path, v))
		}
	}
	walk(path, value)
	return lines
}
