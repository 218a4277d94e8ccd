package op

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/idnode/idnode/internal/wire"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// Numbers is the answer to SeriesTake and SeriesEnd.
type Numbers struct {
	LogIndex uint64
	// Numbers are in the order of the keys.
	Numbers []series.Number
	// Before is the last number of the period before, where the first of one was taken.
	Before *series.Last
}

// DecodeNumbers is DecodeResult for an operation that is answered with numbers. It
// decodes them by hand: the generated code needs more stack than the goroutine of a call
// has, and to copy the stack took 9 % of a node's processor time.
func DecodeNumbers(result []byte) (Numbers, error) {
	if numbers, ok := decodeNumbers(result); ok {
		return numbers, nil
	}
	// A node of a newer program may answer with more than is known here.
	decoded, err := DecodeResult(result)
	if err != nil {
		return Numbers{}, err
	}
	if decoded.GetSeriesNumbers() == nil {
		return Numbers{}, notDecoded("decode numbers", fmt.Errorf("the result is a %T", decoded.GetResult()))
	}
	return numbersOf(decoded), nil
}

// numbersOf returns the numbers that the generated code has decoded.
func numbersOf(result *raftlogv1.Result) Numbers {
	n := Numbers{LogIndex: result.GetLogIndex()}
	for _, m := range result.GetSeriesNumbers().GetNumbers() {
		n.Numbers = append(n.Numbers, NumberOf(m))
	}
	if before := result.GetSeriesNumbers().GetBefore(); before != nil {
		last := LastOf(before)
		n.Before = &last
	}
	return n
}

// Field numbers of raftlog.v1.SeriesNumbers, SeriesLast and SeriesNumber.
const (
	numbersNumbers wire.Number = 1
	numbersBefore  wire.Number = 2

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
)

// decodeNumbers decodes the result of an operation that was answered with numbers. It
// returns false for any other result.
func decodeNumbers(result []byte) (n Numbers, ok bool) {
	r := wire.NewReader(result)
	for r.More() {
		switch r.Next() {
		case resultLogIndex:
			n.LogIndex = r.Varint()
		case resultSeriesNumbers:
			ok = n.decode(r.Message())
		default:
			return n, false
		}
	}
	return n, ok && r.Err() == nil
}

// decode decodes a raftlog.v1.SeriesNumbers.
func (n *Numbers) decode(data []byte) bool {
	r := wire.NewReader(data)
	for r.More() {
		ok := false
		switch r.Next() {
		case numbersNumbers:
			n.Numbers = append(n.Numbers, series.Number{})
			ok = decodeNumber(&n.Numbers[len(n.Numbers)-1], r.Repeated())
		case numbersBefore:
			n.Before = new(series.Last)
			ok = decodeLast(n.Before, r.Message())
		}
		if !ok {
			return false
		}
	}
	return r.Err() == nil
}

// decodeLast decodes a raftlog.v1.SeriesLast.
func decodeLast(l *series.Last, data []byte) bool {
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
func decodeNumber(n *series.Number, data []byte) bool {
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
			n.State = series.State(small(r.Uint32()))
		case numberOverdue:
			n.Overdue = r.Bool()
		case numberDate:
			n.Date = format.Date(protowire.DecodeZigZag(uint64(r.Uint32())))
		case numberTaken:
			n.Taken = int64(r.Varint())
		case numberExpires:
			n.Expires = int64(r.Varint())
		case numberReason:
			n.Reason = r.Text()
		default:
			return false
		}
	}
	return r.Err() == nil
}
