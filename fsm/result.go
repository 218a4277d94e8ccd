package fsm

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// refusal is why an operation was refused: it changed nothing. Its field is named in the public
// API's words.
type refusal raftlogv1.Refusal

// Error implements error, so that changes of a series can return a refusal.
func (r *refusal) Error() string { return r.Detail }

func refuse(reason raftlogv1.RefusalReason, field, format string, args ...any) *refusal {
	return &refusal{Reason: reason, Field: field, Detail: fmt.Sprintf(format, args...)}
}

func (r *refusal) message() *raftlogv1.Refusal { return (*raftlogv1.Refusal)(r) }

// appendRefused appends the whole result of an operation that was refused.
func appendRefused(dst []byte, index uint64, r *refusal) []byte {
	return op.AppendAnswer(op.AppendLogIndex(dst, index), r.message())
}

// withoutWords returns the results, with refusals cut down to index and reason.
func withoutWords(results [][]byte) [][]byte {
	first := slices.IndexFunc(results, op.IsRefusal)
	if first < 0 {
		return results
	}
	cut := slices.Clone(results)
	for i, result := range cut[first:] {
		var r raftlogv1.Result
		if op.IsRefusal(result) && proto.Unmarshal(result, &r) == nil {
			cut[first+i] = appendRefused(nil, r.GetLogIndex(), &refusal{Reason: r.GetRefusal().GetReason()})
		}
	}
	return cut
}

// resultBlock bounds the bytes of results that are allocated at once.
const resultBlock = 16 << 10

// resultRoom is the usual maximum of a result; a larger result costs an allocation.
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

// done records the result that was appended to the slice returned by next.
func (b *resultBuffer) done(result []byte) {
	n := len(result)
	b.results = append(b.results, result[:n:n])
	b.left--
	if n <= cap(b.block)-len(b.block) {
		b.block = b.block[:len(b.block)+n]
	}
}
