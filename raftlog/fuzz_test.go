package raftlog

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// seedEntries is the corpus: whole, damaged, and foreign.
func seedEntries(f *testing.F) {
	good := encode(sampleEntry())
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add(append(bytes.Clone(good), 0x28, 0x01))
	f.Add(AppendEntry(nil, Header{Format: 1}, nil))
	f.Add(AppendEntry(nil, Header{Format: 99}, nil))
	f.Add(AppendEntry(nil, Header{Format: 1, TimeUnixNano: -1}, [][]byte{nil, nil}))
	for i := range good {
		flipped := bytes.Clone(good)
		flipped[i] ^= 0x80
		f.Add(flipped)
	}
}

// FuzzDecodeEntry: what is accepted is exactly what would be written, and the
// generated code reads the same in it.
func FuzzDecodeEntry(f *testing.F) {
	seedEntries(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := DecodeEntry(data, FormatVersion)
		var unknown *UnknownFormatError
		switch {
		case errors.As(err, &unknown), errors.Is(err, ErrCorrupt):
			return
		case err != nil:
			t.Fatalf("an error that is neither: %v", err)
		}
		if again := encode(e); !bytes.Equal(data, again) {
			t.Fatalf("accepted %x\nwould write %x", data, again)
		}
		var m raftlogv1.Entry
		if err := proto.Unmarshal(data, &m); err != nil {
			t.Fatalf("the generated code refuses it: %v", err)
		}
		if want := message(e); !proto.Equal(want, &m) {
			t.Fatalf("want %v\n got %v", want, &m)
		}
	})
}

// FuzzDecodeGroup is FuzzDecodeEntry for a group alone.
func FuzzDecodeGroup(f *testing.F) {
	for _, g := range sampleEntry().Groups {
		f.Add(AppendGroup(nil, g))
	}
	f.Add([]byte{0x0a, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := decodeGroup(data)
		n, checkErr := CheckGroup(data)
		if (err == nil) != (checkErr == nil) {
			t.Fatalf("decodeGroup says %v, CheckGroup %v", err, checkErr)
		}
		if err != nil {
			return
		}
		if n != len(g.Operations) {
			t.Fatalf("counted %d operations of %d", n, len(g.Operations))
		}
		var m raftlogv1.Group
		if err := proto.Unmarshal(data, &m); err != nil {
			t.Fatalf("the generated code refuses it: %v", err)
		}
		if want := groupMessage(g); !proto.Equal(want, &m) {
			t.Fatalf("want %v\n got %v", want, &m)
		}
	})
}

// decodeGroup decodes a group that stands in no entry.
func decodeGroup(data []byte) (Group, error) {
	n, err := CheckGroup(data)
	if err != nil {
		return Group{}, err
	}
	total, operations := 0, make([][]byte, 0, n)
	group, err := walkGroup(data, &total, &operations)
	return group, corrupted(err)
}
