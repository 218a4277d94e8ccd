package wire_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/idnode/idnode/internal/wire"
)

// written is one field of each kind.
func written() []byte {
	b := wire.AppendVarint(nil, 1, 300)
	b = wire.AppendFixed64(b, 2, 1<<63)
	b = wire.AppendBytes(b, 3, "größe")
	b = wire.AppendBytes(b, 4, []byte{0xff})
	b = wire.AppendRepeated(b, 5, [][]byte{{1}, nil, bytes.Repeat([]byte{2}, 200)})
	b = append(wire.AppendLength(b, 2000, 1), 7)
	for _, nothing := range [][]byte{
		wire.AppendVarint(nil, 1, 0), wire.AppendFixed64(nil, 1, 0), wire.AppendBytes(nil, 1, ""), wire.AppendRepeated(nil, 1, nil),
	} {
		b = append(b, nothing...)
	}
	return b
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	got := map[wire.Number][]any{}
	r := wire.NewReader(written())
	for r.More() {
		num := r.Next()
		switch num {
		case 1:
			got[num] = append(got[num], r.Varint())
		case 2:
			got[num] = append(got[num], r.Fixed64())
		case 3:
			got[num] = append(got[num], r.Text())
		case 4:
			got[num] = append(got[num], string(r.Bytes()))
		case 5:
			got[num] = append(got[num], len(r.Repeated()))
		case 2000:
			got[num] = append(got[num], string(r.Message()))
		default:
			r.Unexpected()
		}
	}
	want := map[wire.Number][]any{1: {uint64(300)}, 2: {uint64(1 << 63)}, 3: {"größe"}, 4: {"\xff"}, 5: {1, 0, 200}, 2000: {"\x07"}}
	for num, values := range want {
		if !slices.Equal(got[num], values) {
			t.Errorf("field %d: %v instead of %v", num, got[num], values)
		}
	}
	if r.Err() != nil || len(got) != len(want) {
		t.Errorf("%v, %v", got, r.Err())
	}
}

func TestSizes(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, num := range []wire.Number{1, 15, 16, 5000} {
		for _, v := range []uint64{0, 1, 127, 128, math.MaxUint64} {
			if got := len(wire.AppendVarint(nil, num, v)); got != wire.SizeVarint(num, v) {
				t.Errorf("number %d in field %d: %d bytes", v, num, got)
			}
		}
		for _, v := range []string{"", "x", long[:127], long[:128], long} {
			repeated := [][]byte{[]byte(v), nil}
			if got := len(wire.AppendBytes(nil, num, v)); got != wire.SizeBytes(num, v) {
				t.Errorf("%d bytes in field %d: %d bytes", len(v), num, got)
			}
			if got := len(wire.AppendRepeated(nil, num, repeated)); got != wire.SizeRepeated(num, repeated) {
				t.Errorf("%d bytes, repeated in field %d: %d bytes", len(v), num, got)
			}
		}
	}
}

// TestOnlyOneForm: a reader takes each value in one form only.
func TestOnlyOneForm(t *testing.T) {
	varint := func(r *wire.Reader) { r.Varint() }
	text := func(r *wire.Reader) { _ = r.Text() }
	for name, c := range map[string]struct {
		bad  []byte
		read func(*wire.Reader)
	}{
		"zero":                        {[]byte{0x08, 0}, varint},
		"a long number":               {[]byte{0x08, 0x81, 0}, varint},
		"a long tag":                  {[]byte{0x88, 0, 1}, varint},
		"a tag beyond 32 bits":        {append(protowire.AppendVarint(nil, 1<<35|8), 1), varint},
		"a number that does not end":  {[]byte{0x08, 0xff}, varint},
		"no number":                   {[]byte{0x08}, varint},
		"field 0":                     {[]byte{0x00, 1}, varint},
		"twice":                       {[]byte{0x08, 1, 0x08, 1}, varint},
		"a field before another":      {[]byte{0x10, 1, 0x08, 1}, varint},
		"bytes for a number":          {[]byte{0x0a, 1, 1}, varint},
		"more than 32 bits":           {wire.AppendVarint(nil, 1, 1<<32), func(r *wire.Reader) { r.Uint32() }},
		"a truth of two":              {[]byte{0x08, 2}, func(r *wire.Reader) { r.Bool() }},
		"eight bytes of zero":         {append([]byte{0x09}, make([]byte, 8)...), func(r *wire.Reader) { r.Fixed64() }},
		"seven bytes of eight":        {append([]byte{0x09}, 1, 2, 3, 4, 5, 6, 7), func(r *wire.Reader) { r.Fixed64() }},
		"empty text":                  {[]byte{0x0a, 0}, text},
		"text that is not UTF-8":      {[]byte{0x0a, 1, 0xff}, text},
		"repeated text, not UTF-8":    {[]byte{0x0a, 1, 0xff}, func(r *wire.Reader) { r.RepeatedText() }},
		"text cut short":              {[]byte{0x0a, 2, 'x'}, text},
		"a number for text":           {[]byte{0x08, 1}, text},
		"a number for repeated bytes": {[]byte{0x08, 1}, func(r *wire.Reader) { r.Repeated() }},
		"a message, twice":            {[]byte{0x0a, 0, 0x0a, 0}, func(r *wire.Reader) { r.Message() }},
		"a length beyond all":         {append([]byte{0x0a}, protowire.AppendVarint(nil, math.MaxUint64)...), text},
	} {
		r := wire.NewReader(c.bad)
		for r.More() {
			r.Next()
			c.read(&r)
		}
		if r.Err() == nil {
			t.Errorf("%s: % x was taken", name, c.bad)
		}
		if r.Next() != 0 || r.More() {
			t.Errorf("%s: there is more after an error", name)
		}
	}
}

// FuzzFields: what is a message is read to its end, in the same pieces as protobuf's own.
func FuzzFields(f *testing.F) {
	f.Add(written())
	f.Add([]byte{0x53, 0x0a, 1, 'x', 0x54, 0x55, 1, 2, 3, 4}) // a group, and four bytes
	f.Add([]byte{0x0a, 2, 'x'})
	f.Fuzz(func(t *testing.T, data []byte) {
		rest := data
		for num, v := range wire.Fields(data) {
			wantNum, wantType, size := protowire.ConsumeField(rest)
			if size < 0 {
				if num != 0 {
					t.Fatalf("field %d in % x", num, rest)
				}
				return
			}
			if num != wantNum || v.Type != wantType {
				t.Fatalf("field %d of type %d instead of %d of %d", num, v.Type, wantNum, wantType)
			}
			again := rest[:size]
			switch v.Type {
			case protowire.VarintType:
				_, _, n := protowire.ConsumeTag(again)
				if want, _ := protowire.ConsumeVarint(again[n:]); want != v.Varint {
					t.Fatalf("%d instead of %d", v.Varint, want)
				}
			case protowire.BytesType:
				if !bytes.HasSuffix(again, v.Bytes) {
					t.Fatalf("% x of % x", v.Bytes, again)
				}
			}
			rest = rest[size:]
		}
		if len(rest) > 0 {
			t.Fatalf("% x was not read", rest)
		}
	})
}

func TestReadLength(t *testing.T) {
	for _, want := range []uint64{0, 1, 127, 128, math.MaxUint64} {
		if got, err := wire.ReadLength(bytes.NewReader(protowire.AppendVarint(nil, want))); err != nil || got != want {
			t.Errorf("%d instead of %d: %v", got, want, err)
		}
	}
	for _, bad := range [][]byte{{0x80, 0}, bytes.Repeat([]byte{0xff}, 10), bytes.Repeat([]byte{0xff}, 20)} {
		if got, err := wire.ReadLength(bytes.NewReader(bad)); !errors.Is(err, wire.ErrLength) {
			t.Errorf("% x is %d: %v", bad, got, err)
		}
	}
	if _, err := wire.ReadLength(bytes.NewReader([]byte{0xff})); !errors.Is(err, io.EOF) {
		t.Errorf("cut short: %v", err)
	}
}
