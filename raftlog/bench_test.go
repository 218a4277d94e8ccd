package raftlog

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// benchEntry is what a busy leader writes: the groups of three nodes with 170
// operations of 40 bytes each.
func benchEntry() Entry {
	e := Entry{Header: sampleEntry().Header}
	for range 3 {
		g := sampleEntry().Groups[0]
		g.Operations = nil
		for range 170 {
			g.Operations = append(g.Operations, bytes.Repeat([]byte{'x'}, 40))
		}
		e.Groups = append(e.Groups, g)
	}
	return e
}

func BenchmarkAppendEntry(b *testing.B) {
	e := benchEntry()
	var groups [][]byte
	for _, g := range e.Groups {
		groups = append(groups, AppendGroup(nil, g))
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendEntry(dst[:0], e.Header, groups)
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkAppendGroup(b *testing.B) {
	g := benchEntry().Groups[0]
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendGroup(dst[:0], g)
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkDecodeEntry(b *testing.B) {
	data := encode(benchEntry())
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeEntry(data, FormatVersion); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeEntryGenerated is what the hand-written codec is measured
// against.
func BenchmarkDecodeEntryGenerated(b *testing.B) {
	data := encode(benchEntry())
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var m raftlogv1.Entry
		if err := proto.Unmarshal(data, &m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckGroup(b *testing.B) {
	data := AppendGroup(nil, benchEntry().Groups[0])
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := CheckGroup(data); err != nil {
			b.Fatal(err)
		}
	}
}
