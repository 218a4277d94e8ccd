package op

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/idnode/idnode/internal/wire"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Numbers is the answer to SeriesTake, SeriesEnd and SeriesReconcile.
type Numbers struct {
	LogIndex uint64
	raftlogv1.SeriesNumbers
}

// DecodeNumbers is DecodeResult for an operation that is answered with numbers. It
// decodes them by hand: the generated code needs more stack than the goroutine of a call
// has, and to copy the stack took 9 % of a node's processor time.
func DecodeNumbers(result []byte) (*Numbers, error) {
	if numbers, ok := decodeNumbers(result); ok {
		return numbers, nil
	}
	// A node of a newer program may answer with more than is known here.
	decoded, err := DecodeResult(result)
	if err != nil {
		return nil, err
	}
	if decoded.GetSeriesNumbers() == nil {
		return nil, notDecoded("decode numbers", fmt.Errorf("the result is a %T", decoded.GetResult()))
	}
	return NumbersOf(decoded), nil
}

// NumbersOf returns the numbers in a result; none if it has another kind of answer.
func NumbersOf(result *raftlogv1.Result) *Numbers {
	n, of := &Numbers{LogIndex: result.GetLogIndex()}, result.GetSeriesNumbers()
	n.Numbers, n.Before, n.Begun = of.GetNumbers(), of.GetBefore(), of.GetBegun()
	return n
}

// Field numbers of raftlog.v1.SeriesNumbers, SeriesLast and SeriesNumber.
const (
	numbersNumbers wire.Number = 1
	numbersBefore  wire.Number = 2
	numbersBegun   wire.Number = 3

	lastScope wire.Number = 1
	lastLast  wire.Number = 2

	numberKey     wire.Number = 1
	numberLabel   wire.Number = 2
	numberScope   wire.Number = 3
	numberNumber  wire.Number = 4
	numberText    wire.Number = 5
	numberState   wire.Number = 6
	numberOverdue wire.Number = 7
	numberDate    wire.Number = 8
	numberTaken   wire.Number = 9
	numberExpires wire.Number = 10
	numberReason  wire.Number = 11
	numberNote    wire.Number = 12
)

// decodeNumbers decodes the result of an operation that was answered with numbers. It
// returns false for any other result.
func decodeNumbers(result []byte) (n *Numbers, ok bool) {
	n = &Numbers{}
	r := wire.NewReader(result)
	for r.More() {
		switch r.Next() {
		case resultLogIndex:
			n.LogIndex = r.Varint()
		case resultSeriesNumbers:
			ok = decodeSeriesNumbers(&n.SeriesNumbers, r.Message())
		default:
			return n, false
		}
	}
	return n, ok && r.Err() == nil
}

// decodeSeriesNumbers decodes a raftlog.v1.SeriesNumbers.
func decodeSeriesNumbers(n *raftlogv1.SeriesNumbers, data []byte) bool {
	r := wire.NewReader(data)
	for r.More() {
		ok := false
		switch r.Next() {
		case numbersNumbers:
			number := &raftlogv1.SeriesNumber{}
			n.Numbers = append(n.Numbers, number)
			ok = decodeNumber(number, r.Repeated())
		case numbersBefore:
			n.Before = &raftlogv1.SeriesLast{}
			ok = decodeLast(n.Before, r.Message())
		case numbersBegun:
			n.Begun, ok = r.Bool(), true
		}
		if !ok {
			return false
		}
	}
	return r.Err() == nil
}

// decodeLast decodes a raftlog.v1.SeriesLast.
func decodeLast(l *raftlogv1.SeriesLast, data []byte) bool {
	r := wire.NewReader(data)
	for r.More() {
		switch r.Next() {
		case lastScope:
			l.Scope = append(l.Scope, r.RepeatedText())
		case lastLast:
			l.Last = int64(r.Varint())
		default:
			return false
		}
	}
	return r.Err() == nil
}

// decodeNumber decodes a raftlog.v1.SeriesNumber.
func decodeNumber(n *raftlogv1.SeriesNumber, data []byte) bool {
	r := wire.NewReader(data)
	for r.More() {
		switch r.Next() {
		case numberKey:
			n.Key = r.Text()
		case numberLabel:
			n.Label = r.Text()
		case numberScope:
			n.Scope = append(n.Scope, r.RepeatedText())
		case numberNumber:
			n.Number = int64(r.Varint())
		case numberText:
			n.Text = r.Text()
		case numberState:
			n.State = r.Uint32()
		case numberOverdue:
			n.Overdue = r.Bool()
		case numberDate:
			n.Date = int32(protowire.DecodeZigZag(uint64(r.Uint32())))
		case numberTaken:
			n.TakenUnixNano = int64(r.Varint())
		case numberExpires:
			n.ExpiresUnixNano = int64(r.Varint())
		case numberReason:
			n.Reason = r.Text()
		case numberNote:
			n.Note = r.Text()
		default:
			return false
		}
	}
	return r.Err() == nil
}
