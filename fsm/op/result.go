package op

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/identity"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/internal/wire"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Field numbers of raftlog.v1.Result. A result begins with the log index, followed by a refusal or
// an answer.
const (
	resultLogIndex     wire.Number = 1
	resultRefusal      wire.Number = 2
	resultBefore       wire.Number = 3
	resultIdentityNext wire.Number = 10
	resultValue        wire.Number = 11
	resultRolesBefore  wire.Number = 18

	resultSeriesNumbers wire.Number = 20
)

// Field numbers of raftlog.v1.IdentityNextResult, and of the Values in it.
const (
	nextValues  wire.Number = 1
	valuesFirst wire.Number = 1
	valuesLast  wire.Number = 2
)

// AppendLogIndex appends the index of the log entry, with which each result begins.
func AppendLogIndex(dst []byte, index uint64) []byte {
	return wire.AppendVarint(dst, resultLogIndex, index)
}

// AppendBefore appends the value before an IdentitySeed, or before a HiLoNext that skipped
// numbers.
func AppendBefore(dst []byte, value int64) []byte {
	return wire.AppendPresent(dst, resultBefore, uint64(value))
}

// AppendValue appends the answer of operations that return a number.
func AppendValue(dst []byte, value int64) []byte {
	return wire.AppendPresent(dst, resultValue, uint64(value))
}

// AppendRolesBefore appends the answer of RolesSet: the log index at which the roles
// before were set.
func AppendRolesBefore(dst []byte, index uint64) []byte {
	return wire.AppendPresent(dst, resultRolesBefore, index)
}

// AppendBlocks appends the answer of IdentityNext.
func AppendBlocks(dst []byte, blocks []identity.Block) []byte {
	size := 0
	for _, b := range blocks {
		block := sizeBlock(b)
		size += wire.SizeLength(nextValues, block) + block
	}
	dst = wire.AppendLength(dst, resultIdentityNext, size)
	for _, b := range blocks {
		dst = wire.AppendLength(dst, nextValues, sizeBlock(b))
		dst = wire.AppendVarint(dst, valuesFirst, uint64(b.First))
		dst = wire.AppendVarint(dst, valuesLast, uint64(b.Last))
	}
	return dst
}

func sizeBlock(b identity.Block) int {
	return wire.SizeVarint(valuesFirst, uint64(b.First)) + wire.SizeVarint(valuesLast, uint64(b.Last))
}

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
	r := wire.NewReader(result)
	num := r.Next()
	if num == resultLogIndex {
		r.Varint()
		num = r.Next()
	}
	return num == resultRefusal
}

// DecodeBlocks decodes the result of an IdentityNext that was not refused. It returns
// false for any other result.
func DecodeBlocks(result []byte) (logIndex uint64, blocks []identity.Block, ok bool) {
	r := wire.NewReader(result)
	for r.More() {
		switch r.Next() {
		case resultLogIndex:
			logIndex = r.Varint()
		case resultIdentityNext:
			blocks, ok = decodeValues(r.Message())
		default:
			return 0, nil, false
		}
	}
	return logIndex, blocks, ok && r.Err() == nil
}

// decodeValues decodes a raftlog.v1.IdentityNextResult.
func decodeValues(data []byte) (blocks []identity.Block, ok bool) {
	r := wire.NewReader(data)
	for r.More() {
		if r.Next() != nextValues {
			return nil, false
		}
		block, ok := decodeBlock(r.Repeated())
		if !ok {
			return nil, false
		}
		blocks = append(blocks, block)
	}
	return blocks, r.Err() == nil
}

// decodeBlock decodes a raftlog.v1.Values.
func decodeBlock(data []byte) (b identity.Block, ok bool) {
	r := wire.NewReader(data)
	for r.More() {
		switch r.Next() {
		case valuesFirst:
			b.First = int64(r.Varint())
		case valuesLast:
			b.Last = int64(r.Varint())
		default:
			return b, false
		}
	}
	return b, r.Err() == nil
}

// CodecError is the error of an operation that cannot be encoded, or of bytes that are no
// result.
type CodecError struct {
	what string
	err  error
}

func (e *CodecError) Error() string { return e.what + ": " + e.err.Error() }

func (e *CodecError) Unwrap() error { return e.err }

// DecodeResult returns the answer of an applied operation. The error is a *RefusedError, or an
// *outcome.Error around a *CodecError for bytes that are no result: the operation's effect is then
// unknown.
func DecodeResult(result []byte) (*raftlogv1.Result, error) {
	r := new(raftlogv1.Result)
	if err := proto.Unmarshal(result, r); err != nil {
		return nil, notDecoded("decode a result", err)
	}
	if refusal := r.GetRefusal(); refusal != nil {
		return nil, &RefusedError{Refusal: refusal}
	}
	return r, nil
}

func notDecoded(what string, err error) error {
	return outcome.NewUnknown(outcome.Unspecified, &CodecError{what, err})
}

// RefusedError is an operation that the replicated state refused: nothing changed.
type RefusedError struct {
	// Refusal is the reason, as the log's message.
	Refusal *raftlogv1.Refusal
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused: %s (%s)", e.Refusal.GetDetail(), e.Refusal.GetReason())
}

func (e *RefusedError) Refused() *raftlogv1.Refusal { return e.Refusal }

// RefusalOf returns the refusal in err, or nil. An error has a refusal if it has a method Refused,
// as the error of a call to a peer may have.
func RefusalOf(err error) *raftlogv1.Refusal {
	var refused interface{ Refused() *raftlogv1.Refusal }
	if errors.As(err, &refused) {
		return refused.Refused()
	}
	return nil
}
