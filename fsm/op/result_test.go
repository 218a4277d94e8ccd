package op

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/identity"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestResultsAreWhatProtobufReads compares with the generated code.
func TestResultsAreWhatProtobufReads(t *testing.T) {
	for name, c := range results() {
		t.Run(name, func(t *testing.T) {
			got := new(raftlogv1.Result)
			if err := proto.Unmarshal(c.encoded, got); err != nil {
				t.Fatal(err)
			}
			same(t, c.want, got)
			if IsRefusal(c.encoded) != (c.want.GetRefusal() != nil) {
				t.Error("taken for a refusal, or not")
			}
			_, _, ok := DecodeBlocks(c.encoded)
			if ok != (c.want.GetIdentityNext() != nil) {
				t.Error("taken for values, or not")
			}
			blocksAsGenerated(t, c.encoded)
			if _, ok := decodeNumbers(c.encoded); ok != (c.want.GetSeriesNumbers() != nil) {
				t.Error("taken for numbers, or not")
			}
			numbersAsGenerated(t, c.encoded)
		})
	}
}

// blocksAsGenerated compares decoding by hand, if it succeeded, with the generated code.
func blocksAsGenerated(t *testing.T, data []byte) {
	t.Helper()
	logIndex, blocks, ok := DecodeBlocks(data)
	if !ok {
		return
	}
	got := new(raftlogv1.Result)
	if err := proto.Unmarshal(data, got); err != nil {
		t.Fatalf("protobuf says %v", err)
	}
	want := []identity.Block{}
	for _, v := range got.GetIdentityNext().GetValues() {
		want = append(want, identity.Block{First: v.GetFirst(), Last: v.GetLast()})
	}
	if got.GetLogIndex() != logIndex || !slices.Equal(want, blocks) || got.GetRefusal() != nil {
		t.Fatalf("%d, %v instead of %v", logIndex, blocks, got)
	}
}

// FuzzDecodeBlocks: bytes decoded as values decode to the same with protobuf.
func FuzzDecodeBlocks(f *testing.F) {
	for _, c := range results() {
		f.Add(c.encoded)
	}
	f.Fuzz(blocksAsGenerated)
}

// numbersAsGenerated compares decoding by hand, if it succeeded, with the generated code.
func numbersAsGenerated(t *testing.T, data []byte) {
	t.Helper()
	got, ok := decodeNumbers(data)
	if !ok {
		return
	}
	r := new(raftlogv1.Result)
	if err := proto.Unmarshal(data, r); err != nil {
		t.Fatalf("protobuf says %v", err)
	}
	want := &raftlogv1.Result{LogIndex: got.LogIndex, Result: &raftlogv1.Result_SeriesNumbers{SeriesNumbers: &got.SeriesNumbers}}
	if diff := cmp.Diff(want, r, protocmp.Transform()); diff != "" || r.GetRefusal() != nil {
		t.Fatalf("%v: %s", r, diff)
	}
}

// TestNumbersOfANewerProgram: an answer with a field that is not known here still counts.
func TestNumbersOfANewerProgram(t *testing.T) {
	known := &raftlogv1.SeriesNumbers{
		Numbers: []*raftlogv1.SeriesNumber{{Key: "a", Number: 7, State: 1}},
		Before:  &raftlogv1.SeriesLast{Last: 3},
	}
	newer := protowire.AppendVarint(protowire.AppendTag(AppendAnswer(AppendLogIndex(nil, 9), known), 99, protowire.VarintType), 1)
	got, err := DecodeNumbers(newer)
	if err != nil || got.LogIndex != 9 || len(got.Numbers) != 1 || got.GetNumbers()[0].GetNumber() != 7 || got.GetBefore().GetLast() != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = DecodeNumbers(AppendValue(nil, 1))
	if outcome.Of(err) != outcome.Unknown {
		t.Errorf("a value in place of numbers: %v", err)
	}
}

// FuzzDecodeNumbers: bytes decoded as numbers decode to the same with protobuf.
func FuzzDecodeNumbers(f *testing.F) {
	for _, c := range results() {
		f.Add(c.encoded)
	}
	f.Fuzz(numbersAsGenerated)
}

// TestDecodeResult distinguishes results from refusals.
func TestDecodeResult(t *testing.T) {
	for name, c := range results() {
		got, err := DecodeResult(c.encoded)
		if c.want.GetRefusal() == nil {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			same(t, c.want, got)
			continue
		}
		var refused *RefusedError
		if !errors.As(err, &refused) {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		same(t, c.want.GetRefusal(), RefusalOf(fmt.Errorf("wrapped: %w", err)))
	}
	var codec *CodecError
	if got, err := DecodeResult([]byte{0xff}); !errors.As(err, &codec) || outcome.Of(err) != outcome.Unknown || RefusalOf(err) != nil {
		t.Errorf("of no result: %v, %v", got, err)
	}
}
