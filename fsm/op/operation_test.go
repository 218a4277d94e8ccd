package op

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestKindsAreThoseOfTheMessage: each field of the oneof is a kind, and has its message.
func TestKindsAreThoseOfTheMessage(t *testing.T) {
	fields := (&raftlogv1.Operation{}).ProtoReflect().Descriptor().Oneofs().ByName("op").Fields()
	kinds := map[Kind]bool{}
	for i := range fields.Len() {
		kinds[Kind(fields.Get(i).Number())] = true
	}
	for k := range Kind(200) {
		if k.known() != kinds[k] {
			t.Errorf("kind %d: known %t", k, k.known())
		}
	}
	if got := len(fieldsByType(&raftlogv1.Operation{})); got != fields.Len()+1 {
		t.Errorf("%d fields have messages of their own", got)
	}
}

// TestOperationsAreDecodedAsProtobufDoes compares with the generated code.
func TestOperationsAreDecodedAsProtobufDoes(t *testing.T) {
	for name, c := range operations() {
		t.Run(name, func(t *testing.T) {
			data := c.encode(t)
			sameAsGenerated(t, data)
			o, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			payload := c.payload.ProtoReflect().New().Interface()
			if err := o.DecodePayload(payload); err != nil || !proto.Equal(payload, c.payload) {
				t.Errorf("%v instead of %v (%v)", payload, c.payload, err)
			}
			if o.Keyed != (c.Request != nil) || o.Keyed && o.Request != *c.Request {
				t.Errorf("%+v instead of %+v", o.Request, c.Request)
			}
			if o.HasPrincipal != (c.Principal != nil) || o.HasPrincipal && string(o.Principal) != *c.Principal {
				t.Errorf("the principal %q", o.Principal)
			}
		})
	}
}

// sameAsGenerated compares decoding by hand, if it succeeded, with the generated code.
func sameAsGenerated(t *testing.T, data []byte) {
	t.Helper()
	o, err := Decode(data)
	if err != nil {
		return
	}
	var m raftlogv1.Operation
	if proto.Unmarshal(data, &m) != nil {
		return // It looks deeper, and at UTF-8; that is refused later.
	}
	want := Operation{
		Database: []byte(m.GetDatabase()), Kind: o.Kind, Payload: o.Payload, Keyed: m.GetRequest() != nil,
		HasPrincipal: m.Principal != nil, Principal: []byte(m.GetPrincipal()),
	}
	if k := m.GetRequest(); k != nil {
		want.Request = RequestKey{
			Key: [16]byte(k.GetKey()), Fingerprint: k.GetFingerprint(), Retry: k.GetRetry(), Since: k.GetSince(),
		}
	}
	what := m.ProtoReflect().WhichOneof(m.ProtoReflect().Descriptor().Oneofs().ByName("op"))
	if what == nil || Kind(what.Number()) != o.Kind {
		t.Fatalf("kind %d instead of %v", o.Kind, what)
	}
	same(t, want, o)
	payload := m.ProtoReflect().Get(what).Message()
	decoded := payload.New().Interface()
	if o.DecodePayload(decoded) != nil {
		return // It has unknown fields.
	}
	same(t, payload.Interface(), decoded)
	if next := m.GetIdentityNext(); next != nil {
		if got, err := o.DecodeIdentityNext(); err == nil {
			same(t, IdentityNext{Name: []byte(next.GetName()), Count: next.GetCount(), Separator: []byte(next.GetSeparator())}, got)
		}
	}
	if named, ok := payload.Interface().(interface{ GetName() string }); ok {
		same(t, named.GetName(), string(o.Name()))
	}
	// Of several flags one suffices.
	if (m.GetIdentitySeed().GetForce() || m.GetIdentityDelete().GetForget()) && !o.Forced() {
		t.Fatal("not forced")
	}
}

// same fails the test if want and got differ; nil bytes are empty ones.
func same(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, protocmp.Transform(), cmp.Comparer(bytes.Equal)); d != "" {
		t.Fatalf("-want +got:\n%s", d)
	}
}

func TestMalformedOperations(t *testing.T) {
	next := Envelope{Database: "db"}.EncodeIdentityNext("x", 1, "/")
	for name, bad := range map[string][]byte{
		"empty":                      {},
		"no message":                 {0xff},
		"only a database":            {0x0a, 2, 'd', 'b'},
		"two kinds":                  append(bytes.Clone(next), 0x82, 1, 3, 0x0a, 1, 'x'),
		"one kind twice":             append(bytes.Clone(next), next[4:]...),
		"unknown field":              protowire.AppendVarint(protowire.AppendTag(bytes.Clone(next), 99, protowire.VarintType), 1),
		"unknown kind":               {0xea, 1, 0},
		"database as number":         {0x08, 1, 0x52, 0},
		"principal as number":        append(bytes.Clone(next), 0x18, 1),
		"request key as number":      append(bytes.Clone(next), 0x10, 1),
		"kind as number":             {0x50, 1},
		"group field":                {0x53, 0x54},
		"fixed32 field":              {0x55, 1, 2, 3, 4},
		"cut short":                  next[:5],
		"two request keys":           slices.Concat(next[:4], requests["retry"].append(nil), requests["retry"].append(nil), next[4:]),
		"two principals":             slices.Concat(next[:4], []byte{0x1a, 0, 0x1a, 0}, next[4:]),
		"request key of two bytes":   slices.Concat(next[:4], []byte{0x12, 4, 0x0a, 2, 1, 2}, next[4:]),
		"request key without key":    slices.Concat(next[:4], []byte{0x12, 2, 0x18, 1}, next[4:]),
		"request key of other field": slices.Concat(next[:4], []byte{0x12, 2, 0x38, 1}, next[4:]),
		"request key, retry fixed":   slices.Concat(next[:4], []byte{0x12, 9, 0x19, 1, 2, 3, 4, 5, 6, 7, 8}, next[4:]),
		"a principal at the end":     append(bytes.Clone(next), 0x1a, 0),
		"an empty database":          append([]byte{0x0a, 0}, next[4:]...),
		"a long number":              append([]byte{0x8a, 0}, next[1:]...),
	} {
		if o, err := Decode(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
	for name, bad := range map[string][]byte{
		"unknown field":       {0x20, 1},
		"cut short":           {0x0a, 9, 'x'},
		"name as number":      {0x08, 1},
		"count as bytes":      {0x12, 1, 1},
		"separator as number": {0x18, 1},
		"count of zero":       {0x10, 0},
		"out of order":        {0x10, 1, 0x0a, 1, 'x'},
	} {
		o := Operation{Kind: KindIdentityNext, Payload: bad}
		if next, err := o.DecodeIdentityNext(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, next, err)
		}
		if name != "unknown field" && name != "cut short" && name != "name as number" {
			continue // The generated code takes them, if as unknown fields.
		}
		if err := o.DecodePayload(&raftlogv1.IdentityNext{}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s, by generated code: %v", name, err)
		}
	}
}

// TestAnUnknownFieldDeepInAPayloadIsMalformed: nodes of two releases would apply different operations. Only a
// member's is left to its own program.
func TestAnUnknownFieldDeepInAPayloadIsMalformed(t *testing.T) {
	const newer = "\xfa\x3f\x01x"
	deep := map[Kind]proto.Message{
		KindSeriesDefine:   &raftlogv1.SeriesDefine{Name: "invoices", Definition: &raftlogv1.SeriesDefinition{}},
		KindMerge:          &raftlogv1.Merge{Identities: []*raftlogv1.MergeIdentity{{Name: "users"}}},
		KindBootstrap:      &raftlogv1.Bootstrap{Members: []*raftlogv1.Member{{Tag: "A"}}},
		KindMemberAdd:      &raftlogv1.MemberAdd{Member: &raftlogv1.Member{Tag: "A"}},
		KindMemberAnnounce: &raftlogv1.MemberAnnounce{Member: &raftlogv1.Member{Tag: "A"}},
	}
	for kind, payload := range deep {
		switch m := payload.(type) {
		case *raftlogv1.SeriesDefine:
			m.Definition.ProtoReflect().SetUnknown([]byte(newer))
		case *raftlogv1.Merge:
			m.Identities[0].ProtoReflect().SetUnknown([]byte(newer))
		case *raftlogv1.Bootstrap:
			m.Members[0].ProtoReflect().SetUnknown([]byte(newer))
		case *raftlogv1.MemberAdd:
			m.Member.ProtoReflect().SetUnknown([]byte(newer))
		case *raftlogv1.MemberAnnounce:
			m.Member.ProtoReflect().SetUnknown([]byte(newer))
		}
		data, err := proto.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		o := Operation{Kind: kind, Payload: data}
		err = o.DecodePayload(payload.ProtoReflect().New().Interface())
		if ofMember := kind == KindBootstrap || kind == KindMemberAdd || kind == KindMemberAnnounce; ofMember == (err != nil) {
			t.Errorf("%T: %v", payload, err)
		}
	}
}

func TestEncodeRefusesTextThatIsNotUTF8(t *testing.T) {
	for name, o := range map[string]operation{
		"database":  {Envelope: Envelope{Database: "\xff"}, payload: &raftlogv1.Claim{Id: "x"}},
		"principal": {Envelope: Envelope{Principal: proto.String("\xff")}, payload: &raftlogv1.Claim{Id: "x"}},
		"payload":   {payload: &raftlogv1.Claim{Id: "\xff"}},
	} {
		var codec *CodecError
		if data, err := o.Encode(o.payload); !errors.As(err, &codec) || outcome.Of(err) != outcome.NotApplied {
			t.Errorf("%s: %x, %v", name, data, err)
		}
	}
}

// FuzzDecode: decoding by hand and the generated code agree.
func FuzzDecode(f *testing.F) {
	for _, c := range operations() {
		f.Add(c.encode(f))
	}
	f.Fuzz(sameAsGenerated)
}

// BenchmarkDecode is why the most frequent operation is decoded by hand.
func BenchmarkDecode(b *testing.B) {
	data := Envelope{Database: "db", Request: requests["retry"], Principal: proto.String("CN=shop")}.EncodeIdentityNext("users|7", 1, "/")
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			o, err := Decode(data)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := o.DecodeIdentityNext(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m raftlogv1.Operation
			if err := proto.Unmarshal(data, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
