package op

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Field numbers of raftlog.v1.Result. A result begins with the log index, and goes on
// with a refusal or an answer.
const (
	resultLogIndex     protowire.Number = 1
	resultRefusal      protowire.Number = 2
	resultBefore       protowire.Number = 3
	resultIdentityNext protowire.Number = 10
	resultValue        protowire.Number = 11
	resultRolesBefore  protowire.Number = 18

	resultSeriesNumbers protowire.Number = 20
)

// Field numbers of raftlog.v1.IdentityNextResult, and of the Values in it.
const (
	nextValues  protowire.Number = 1
	valuesFirst protowire.Number = 1
	valuesLast  protowire.Number = 2
)

// AppendLogIndex appends the index of the log entry, with which each result begins.
func AppendLogIndex(dst []byte, index uint64) []byte {
	return appendNumber(dst, resultLogIndex, index)
}

// AppendBefore appends the value before an IdentitySeed, or before a HiLoNext that skipped
// numbers.
func AppendBefore(dst []byte, value int64) []byte {
	return appendPresent(dst, resultBefore, uint64(value))
}

// AppendValue appends the answer of operations that return a number.
func AppendValue(dst []byte, value int64) []byte {
	return appendPresent(dst, resultValue, uint64(value))
}

// AppendRolesBefore appends the answer of RolesSet: the log index at which the roles
// before were set.
func AppendRolesBefore(dst []byte, index uint64) []byte {
	return appendPresent(dst, resultRolesBefore, index)
}

// appendPresent appends a number that is written also if it is 0.
func appendPresent(dst []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

// AppendBlocks appends the answer of IdentityNext.
func AppendBlocks(dst []byte, blocks []identity.Block) []byte {
	size := 0
	for _, b := range blocks {
		size += 1 + protowire.SizeBytes(sizeBlock(b))
	}
	dst = protowire.AppendTag(dst, resultIdentityNext, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(size))
	for _, b := range blocks {
		dst = protowire.AppendTag(dst, nextValues, protowire.BytesType)
		dst = protowire.AppendVarint(dst, uint64(sizeBlock(b)))
		dst = appendNumber(dst, valuesFirst, uint64(b.First))
		dst = appendNumber(dst, valuesLast, uint64(b.Last))
	}
	return dst
}

// sizeBlock is the encoded size of a raftlog.v1.Values.
func sizeBlock(b identity.Block) int { return sizeNumber(uint64(b.First)) + sizeNumber(uint64(b.Last)) }

// answerFields are the fields of raftlog.v1.Result that are messages.
var answerFields = fieldsByType(&raftlogv1.Result{})

// AppendAnswer appends a Refusal, or the message that answers an operation. Its text must
// be UTF-8.
func AppendAnswer(dst []byte, answer proto.Message) []byte {
	dst, err := appendMessage(dst, answerFields, answer)
	if err != nil {
		panic(fmt.Sprintf("op: a result cannot be encoded: %v", err))
	}
	return dst
}

// IsRefusal reports whether a result is a log index and a refusal.
func IsRefusal(result []byte) bool {
	num, typ, n := protowire.ConsumeTag(result)
	if n > 0 && num == resultLogIndex {
		if m := protowire.ConsumeFieldValue(num, typ, result[n:]); m > 0 {
			num, _, _ = protowire.ConsumeTag(result[n+m:])
		}
	}
	return num == resultRefusal
}

// DecodeBlocks decodes the result of an IdentityNext that was not refused. It returns
// false for any other result.
func DecodeBlocks(result []byte) (logIndex uint64, blocks []identity.Block, ok bool) {
	for len(result) > 0 {
		num, typ, number, values, n := consumeField(result)
		switch {
		case n > 0 && num == resultLogIndex && typ == protowire.VarintType:
			logIndex = number
		case n > 0 && num == resultIdentityNext && typ == protowire.BytesType && !ok:
			if blocks, ok = decodeValues(values); !ok {
				return 0, nil, false
			}
		default:
			return 0, nil, false
		}
		result = result[n:]
	}
	return logIndex, blocks, ok
}

// decodeValues decodes a raftlog.v1.IdentityNextResult.
func decodeValues(data []byte) (blocks []identity.Block, ok bool) {
	for len(data) > 0 {
		num, typ, _, values, n := consumeField(data)
		block, good := decodeBlock(values)
		if n < 0 || num != nextValues || typ != protowire.BytesType || !good {
			return nil, false
		}
		blocks, data = append(blocks, block), data[n:]
	}
	return blocks, true
}

// decodeBlock decodes a raftlog.v1.Values.
func decodeBlock(data []byte) (b identity.Block, ok bool) {
	for len(data) > 0 {
		num, typ, number, _, n := consumeField(data)
		switch {
		case n > 0 && num == valuesFirst && typ == protowire.VarintType:
			b.First = int64(number)
		case n > 0 && num == valuesLast && typ == protowire.VarintType:
			b.Last = int64(number)
		default:
			return b, false
		}
		data = data[n:]
	}
	return b, true
}
