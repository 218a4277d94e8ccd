package raftlog

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// equal compares entries; to the codec nil and empty are the same.
func equal(t testing.TB, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("-want +got:\n%s", d)
	}
}

// encode encodes an entry with its groups.
func encode(e Entry) []byte {
	groups := make([][]byte, len(e.Groups))
	for i, g := range e.Groups {
		groups[i] = AppendGroup(nil, g)
	}
	return AppendEntry(nil, e.Header, groups)
}

// message returns e as the generated message.
func message(e Entry) *raftlogv1.Entry {
	m := &raftlogv1.Entry{Format: e.Format, ClusterId: e.ClusterID, TimeUnixNano: e.TimeUnixNano}
	for _, g := range e.Groups {
		m.Groups = append(m.Groups, groupMessage(g))
	}
	return m
}

func groupMessage(g Group) *raftlogv1.Group {
	return &raftlogv1.Group{
		Origin: g.Origin, Session: g.Session, Sequence: g.Sequence,
		Acknowledged: g.Acknowledged, Operations: g.Operations,
	}
}

// marshal encodes m with the generated code.
func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func drawGroup(t *rapid.T) Group {
	return Group{
		Origin:       rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "origin"),
		Session:      rapid.Uint64().Draw(t, "session"),
		Sequence:     rapid.Uint64().Draw(t, "sequence"),
		Acknowledged: rapid.Uint64().Draw(t, "acknowledged"),
		Operations:   rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 200), 0, 5).Draw(t, "operations"),
	}
}

func drawEntry(t *rapid.T) Entry {
	return Entry{
		Header: Header{
			Format:       FormatVersion,
			ClusterID:    rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "cluster"),
			TimeUnixNano: rapid.Int64().Draw(t, "time"),
		},
		Groups: rapid.SliceOfN(rapid.Custom(drawGroup), 0, 5).Draw(t, "groups"),
	}
}

func TestEncodingIsThatOfTheMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		got := encode(e)
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(message(e))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Fatalf("want %x\n got %x", want, got)
		}
	})
}

func TestSizesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		groups := make([][]byte, len(e.Groups))
		for i, g := range e.Groups {
			groups[i] = AppendGroup(nil, g)
			if want, got := len(groups[i]), SizeGroup(g); want != got {
				t.Fatalf("group: size %d, encoded %d", got, want)
			}
		}
		if want, got := len(AppendEntry(nil, e.Header, groups)), SizeEntry(e.Header, groups); want != got {
			t.Fatalf("entry: size %d, encoded %d", got, want)
		}
	})
}

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		got, err := DecodeEntry(encode(e), FormatVersion)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}

func TestAppendKeepsWhatWasThere(t *testing.T) {
	e := sampleEntry()
	got := AppendEntry([]byte("before"), e.Header, [][]byte{AppendGroup(nil, e.Groups[0])})
	if !bytes.HasPrefix(got, []byte("before")) {
		t.Fatalf("prefix is gone: %q", got)
	}
}

func TestDecodedOperationsAreViews(t *testing.T) {
	data := encode(sampleEntry())
	e, err := DecodeEntry(data, FormatVersion)
	if err != nil {
		t.Fatal(err)
	}
	op := e.Groups[0].Operations[0]
	i := bytes.Index(data, op)
	data[i]++
	if op[0] != data[i] {
		t.Fatal("the operation was copied")
	}
}

func TestAppendingToOneOperationLeavesTheNextAlone(t *testing.T) {
	e, err := DecodeEntry(encode(sampleEntry()), FormatVersion)
	if err != nil {
		t.Fatal(err)
	}
	ops := e.Groups[0].Operations
	want := string(ops[1])
	_ = append(ops[0], 0xff, 0xff, 0xff)
	_ = append(e.Groups[0].Operations, []byte("other"))
	equal(t, want, string(e.Groups[0].Operations[1]))
	equal(t, "three", string(e.Groups[1].Operations[0]))
}

func sampleEntry() Entry {
	return Entry{
		Header: Header{Format: 1, ClusterID: bytes.Repeat([]byte{7}, 16), TimeUnixNano: 1_700_000_000_000_000_000},
		Groups: []Group{
			{Origin: bytes.Repeat([]byte{1}, 16), Session: 3, Sequence: 9, Acknowledged: 8, Operations: [][]byte{[]byte("one"), []byte("two")}},
			{Operations: [][]byte{[]byte("three"), {}}},
		},
	}
}

func TestANewerFormatIsNotReadAtAll(t *testing.T) {
	data := AppendEntry(nil, Header{Format: FormatVersion + 1}, nil)
	data = append(data, 0xff, 0xff, 0xff) // not even a field
	_, err := DecodeEntry(data, FormatVersion)
	var unknown *UnknownFormatError
	if !errors.As(err, &unknown) {
		t.Fatalf("got %v", err)
	}
	equal(t, &UnknownFormatError{What: "log entry", Format: FormatVersion + 1, Known: FormatVersion}, unknown)
	if errors.Is(err, ErrCorrupt) {
		t.Fatal("a newer format is not damage")
	}
}

func TestAReaderMayKnowLessOrMore(t *testing.T) {
	data := AppendEntry(nil, Header{Format: 2}, nil)
	if _, err := DecodeEntry(data, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeEntry(data, 1); err == nil {
		t.Fatal("format 2 was read by a reader of format 1")
	}
}

func TestRefusedEntries(t *testing.T) {
	good := encode(sampleEntry())
	head := AppendEntry(nil, Header{Format: 1}, nil)
	with := func(b ...byte) []byte { return append(bytes.Clone(head), b...) }
	for name, data := range map[string][]byte{
		"empty":                     nil,
		"no format":                 AppendEntry(nil, Header{TimeUnixNano: 5}, nil),
		"format zero":               {0x08, 0x00},
		"format beyond 32 bits":     {0x08, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"format twice":              with(0x08, 0x01),
		"format as bytes":           {0x0a, 0x01, 0x01},
		"overlong number":           {0x08, 0x81, 0x00},
		"cut short":                 good[:len(good)-1],
		"one byte more":             append(bytes.Clone(good), 0x22),
		"unknown field":             with(0x28, 0x01),
		"field zero":                with(0x00, 0x01),
		"fields out of order":       with(0x18, 0x05, 0x12, 0x01, 0x01),
		"cluster id twice":          with(0x12, 0x01, 0x01, 0x12, 0x01, 0x01),
		"empty cluster id":          with(0x12, 0x00),
		"large cluster id":          AppendEntry(nil, Header{Format: 1, ClusterID: make([]byte, MaxClusterIDBytes+1)}, nil),
		"time zero":                 with(0x18, 0x00),
		"time as bytes":             with(0x1a, 0x01, 0x01),
		"group as number":           with(0x20, 0x01),
		"group longer than the end": with(0x22, 0x7f, 0x01),
		"group with unknown field":  with(0x22, 0x02, 0x30, 0x01),
		"group with large origin": AppendEntry(nil, Header{Format: 1},
			[][]byte{AppendGroup(nil, Group{Origin: make([]byte, MaxOriginBytes+1)})}),
		"group with operation as number": with(0x22, 0x02, 0x28, 0x01),
		"group out of order":             with(0x22, 0x04, 0x18, 0x01, 0x10, 0x01),
		"too many groups":                AppendEntry(nil, Header{Format: 1}, make([][]byte, MaxGroups+1)),
		"too many operations": AppendEntry(nil, Header{Format: 1}, [][]byte{
			AppendGroup(nil, Group{Operations: make([][]byte, MaxOperations)}),
			AppendGroup(nil, Group{Operations: make([][]byte, 1)}),
		}),
		"too large": make([]byte, MaxEntryBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeEntry(data, FormatVersion); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestBoundsThemselvesAreAccepted(t *testing.T) {
	half := AppendGroup(nil, Group{Operations: make([][]byte, MaxOperations/2)})
	if _, err := DecodeEntry(AppendEntry(nil, Header{Format: 1}, [][]byte{half, half}), FormatVersion); err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeEntry(AppendEntry(nil, Header{Format: 1}, make([][]byte, MaxGroups)), FormatVersion); err != nil {
		t.Fatal(err)
	}
}

func TestCheckGroupCountsOperations(t *testing.T) {
	n, err := CheckGroup(AppendGroup(nil, sampleEntry().Groups[0]))
	if err != nil || n != 2 {
		t.Fatalf("got %d, %v", n, err)
	}
	if _, err := CheckGroup([]byte{0x30, 0x01}); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	if _, err := decodeGroup(make([]byte, MaxEntryBytes+1)); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
}

func TestGroupResultAsAMessage(t *testing.T) {
	for _, s := range []Status{Applied, StaleSession, StaleSequence} {
		want := GroupResult{Status: s, Results: [][]byte{[]byte("a"), nil}}
		var m raftlogv1.GroupResult
		if err := proto.Unmarshal(marshal(t, GroupResultToProto(want)), &m); err != nil {
			t.Fatal(err)
		}
		got, err := GroupResultFromProto(&m)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, want, got)
	}
	for _, s := range []raftlogv1.GroupResult_Status{0, 4, -1} {
		if _, err := GroupResultFromProto(&raftlogv1.GroupResult{Status: s}); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("status %d: got %v", s, err)
		}
	}
}

func TestStatusInWords(t *testing.T) {
	equal(t, "applied, stale session, stale sequence, status 0",
		Applied.String()+", "+StaleSession.String()+", "+StaleSequence.String()+", "+Status(0).String())
	equal(t, raftlogv1.GroupResult_STATUS_APPLIED, raftlogv1.GroupResult_Status(Applied))
	equal(t, raftlogv1.GroupResult_STATUS_STALE_SESSION, raftlogv1.GroupResult_Status(StaleSession))
	equal(t, raftlogv1.GroupResult_STATUS_STALE_SEQUENCE, raftlogv1.GroupResult_Status(StaleSequence))
}
