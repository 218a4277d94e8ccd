package fsm

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Field numbers of raftlog.v1.Result.
const (
	resultLogIndex     protowire.Number = 1
	resultRefusal      protowire.Number = 2
	resultBefore       protowire.Number = 3
	resultIdentityNext protowire.Number = 10
	resultValue        protowire.Number = 11
	resultHiLoNext     protowire.Number = 12
	resultHiLoReturn   protowire.Number = 13
	resultMember       protowire.Number = 14
	resultMerge        protowire.Number = 15
	resultMergeCluster protowire.Number = 16
	resultRolesBefore  protowire.Number = 18
	resultEtag         protowire.Number = 19
)

// refusal is why an operation was refused: it changed nothing.
type refusal struct {
	reason raftlogv1.RefusalReason
	field  string // the field at fault, in the public API's words; may be empty
	detail string
}

func refuse(reason raftlogv1.RefusalReason, field, format string, args ...any) *refusal {
	return &refusal{reason: reason, field: field, detail: fmt.Sprintf(format, args...)}
}

// appendLogIndex begins a result.
func appendLogIndex(dst []byte, index uint64) []byte {
	return appendNumber(dst, resultLogIndex, index)
}

// appendRefusal appends a refusal to a result.
func appendRefusal(dst []byte, r *refusal) []byte {
	return appendMessage(dst, resultRefusal, &raftlogv1.Refusal{Reason: r.reason, Field: r.field, Detail: r.detail})
}

// withoutWords returns the results, with refusals cut down to index and reason.
func withoutWords(results [][]byte) [][]byte {
	first := slices.IndexFunc(results, isRefusal)
	if first < 0 {
		return results
	}
	cut := slices.Clone(results)
	for i, result := range cut[first:] {
		var r raftlogv1.Result
		if isRefusal(result) && proto.Unmarshal(result, &r) == nil {
			cut[first+i] = appendRefusal(appendLogIndex(nil, r.GetLogIndex()), &refusal{reason: r.GetRefusal().GetReason()})
		}
	}
	return cut
}

// isRefusal reports whether a result is what appendRefused wrote: the log index, then the
// refusal.
func isRefusal(result []byte) bool {
	num, typ, n := protowire.ConsumeTag(result)
	if n > 0 && num == resultLogIndex {
		if m := protowire.ConsumeFieldValue(num, typ, result[n:]); m > 0 {
			num, _, _ = protowire.ConsumeTag(result[n+m:])
		}
	}
	return num == resultRefusal
}

// appendValue appends the answer of operations that return a number. It is written even
// if it is zero: the field is part of a oneof.
func appendValue(dst []byte, value int64) []byte {
	dst = protowire.AppendTag(dst, resultValue, protowire.VarintType)
	return protowire.AppendVarint(dst, uint64(value))
}

// appendBlocks appends the answer of IdentityNext, by hand because it is the
// most frequent one.
func appendBlocks(dst []byte, blocks []identity.Block) []byte {
	size := 0
	for _, b := range blocks {
		size += 1 + protowire.SizeBytes(sizeBlock(b))
	}
	dst = protowire.AppendTag(dst, resultIdentityNext, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(size))
	for _, b := range blocks {
		dst = protowire.AppendTag(dst, 1, protowire.BytesType)
		dst = protowire.AppendVarint(dst, uint64(sizeBlock(b)))
		dst = appendNumber(dst, 1, uint64(b.First))
		dst = appendNumber(dst, 2, uint64(b.Last))
	}
	return dst
}

// sizeBlock is the encoded size of a raftlog.v1.Values.
func sizeBlock(b identity.Block) int { return sizeNumber(uint64(b.First)) + sizeNumber(uint64(b.Last)) }

// appendMessage appends a message as field num of a result.
func appendMessage(dst []byte, num protowire.Number, m proto.Message) []byte {
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(proto.Size(m)))
	// Deterministic, because results are part of the state; and marshalling
	// fails for text that is no UTF-8 only, which is never let in.
	dst, err := proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(dst, m)
	if err != nil {
		panic(fmt.Sprintf("fsm: a result cannot be encoded: %v", err))
	}
	return dst
}

// appendNumber appends a varint field; as in proto3, zero is not written.
func appendNumber(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	dst = protowire.AppendTag(dst, num, protowire.VarintType)
	return protowire.AppendVarint(dst, v)
}

// sizeNumber is the size of a varint field with a tag of one byte.
func sizeNumber(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(v)
}

// resultBlock is how many bytes of results are allocated at once at most.
const resultBlock = 16 << 10

// resultRoom is the usual maximum of a result; a larger one costs an allocation.
const resultRoom = 48

// resultBuffer holds the results of one group. They share large allocations
// within the group, but not across groups: a session keeps the results of each
// group for a time of its own.
type resultBuffer struct {
	results [][]byte
	block   []byte
	left    int // results to come
}

func newResultBuffer(count int) resultBuffer {
	return resultBuffer{results: make([][]byte, 0, count), left: count}
}

// next returns where the next result is to be appended.
func (b *resultBuffer) next() []byte {
	if cap(b.block)-len(b.block) < resultRoom {
		b.block = make([]byte, 0, min(b.left*resultRoom, resultBlock))
	}
	return b.block[len(b.block):]
}

// done takes the result that was appended to what next returned.
func (b *resultBuffer) done(result []byte) {
	n := len(result)
	b.results = append(b.results, result[:n:n])
	b.left--
	if n <= cap(b.block)-len(b.block) {
		b.block = b.block[:len(b.block)+n]
	}
}
